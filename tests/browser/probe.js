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
        return { address: e.src || e.data || "srcdoc", root, height: e.getBoundingClientRect().height };
    });

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
        sticksOut: [...pageScrolls, ...wide],
        words: main.innerText + [...main.querySelectorAll("details")].map((e) => e.textContent).join("\n"),
        minutes: main.querySelector(".minutes")?.textContent ?? null,
    };
}
