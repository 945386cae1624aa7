// Runs inside a page and returns what the checks want to know about it.
() => {
    const visible = (element) =>
        element.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true });
    const shown = (element) => {
        const words = element.textContent.trim().replace(/\s+/g, " ");
        return `<${element.tagName.toLowerCase()}> "${words.slice(0, 40)}"`;
    };
    const main = document.querySelector("main") ?? document.body;

    // Everything that a link may point at.
    const anchors = [...document.querySelectorAll("[id], a[name]")].map((e) => e.id || e.getAttribute("name"));
    const links = [...document.querySelectorAll("a[href], area[href]")]
        .map((e) => ({ href: e.href.baseVal ?? e.href, written: e.getAttribute("href") ?? "" }))
        .filter((link) => link.written !== "");

    const brokenImages = [...document.images].filter((i) => !(i.complete && i.naturalWidth > 0)).map((i) => i.src);
    // An embedded document that did not arrive has no root of its own, or an error page's.
    const embedded = [...document.querySelectorAll("iframe, object, embed")].map((e) => {
        let root = null;
        try {
            root = (e.contentDocument ?? e.getSVGDocument?.())?.documentElement?.tagName ?? null;
        } catch {}
        return { address: e.src || e.data || "srcdoc", root, title: e.title, height: e.getBoundingClientRect().height };
    });

    // Contrast by WCAG 2: text against the nearest background that is painted.
    const channels = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);
    const luminance = ([r, g, b]) => {
        const f = (c) => ((c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b);
    };
    const over = (top, alpha, below) => top.slice(0, 3).map((c, i) => c * alpha + below[i] * (1 - alpha));
    const background = (element) => {
        const layers = [];
        for (let e = element; e; e = e.parentElement) {
            const colour = channels(getComputedStyle(e).backgroundColor);
            const alpha = colour[3] ?? 1;
            if (colour.length >= 3 && alpha > 0) layers.push([colour, alpha]);
            if (colour.length >= 3 && alpha === 1) break;
        }
        return layers.reduceRight((below, [colour, alpha]) => over(colour, alpha, below), [255, 255, 255]);
    };
    const opacity = (element) => {
        let product = 1;
        for (let e = element; e; e = e.parentElement) product *= Number(getComputedStyle(e).opacity);
        return product;
    };
    const faint = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const seen = new Set();
    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement;
        if (!walker.currentNode.data.trim() || seen.has(element) || element.closest("svg, script, style")) continue;
        seen.add(element);
        if (!visible(element)) continue;
        const style = getComputedStyle(element);
        const below = background(element);
        const colour = channels(style.color);
        const text = over(colour, (colour[3] ?? 1) * opacity(element), below);
        const [light, dark] = [luminance(text), luminance(below)].sort((a, b) => b - a);
        const contrast = (light + 0.05) / (dark + 0.05);
        const size = parseFloat(style.fontSize);
        const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
        // Colours of code come from mdBook's highlighter; large text may be fainter.
        const wanted = large || element.closest("pre code") ? 3 : 4.5;
        if (contrast < wanted) faint.push(`${shown(element)} has a contrast of ${contrast.toFixed(1)}, not ${wanted}`);
    }

    // What sticks out of the window on the right, unless its own box scrolls.
    const scrolls = (element) => {
        for (let e = element; e && e !== main; e = e.parentElement) {
            const style = getComputedStyle(e);
            if (style.overflowX !== "visible" && e.getBoundingClientRect().right <= innerWidth + 1 && e !== element) return true;
        }
        return false;
    };
    const wide = [...main.querySelectorAll("*")]
        .filter((e) => visible(e) && !e.closest("svg *") && e.getBoundingClientRect().right > innerWidth + 1 && !scrolls(e))
        .map(shown);
    const pageScrolls = [document.documentElement, document.body, document.querySelector(".content")]
        .filter((e) => e && e.scrollWidth > e.clientWidth + 1)
        .map((e) => `<${e.tagName.toLowerCase()}> is ${e.scrollWidth} wide in a window of ${innerWidth}`);

    return {
        title: document.title,
        anchors,
        links,
        brokenImages,
        embedded,
        faint,
        sticksOut: [...pageScrolls, ...wide],
        words: main.innerText + [...main.querySelectorAll("details")].map((e) => e.textContent).join("\n"),
        minutes: main.querySelector(".minutes")?.textContent ?? null,
        sums: [...main.querySelectorAll(".sum[data-pages]")].map((e) => ({ pages: e.dataset.pages, as: e.dataset.as ?? "", says: e.textContent })),
    };
}
