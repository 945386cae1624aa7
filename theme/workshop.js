// mdBook's page of everything keeps the addresses of links and images right, but not those of
// <object>s. Paper cannot be clicked, so a plain picture takes the place of each.
(() => {
    if (!location.pathname.endsWith("/print.html")) return;
    for (const object of document.querySelectorAll("object[data]")) {
        const picture = document.createElement("img");
        picture.src = object.getAttribute("data").replace(/^(\.\.\/)+/, "");
        picture.alt = object.title;
        object.replaceWith(picture);
    }
})();

// What scrolls has to scroll by keyboard as well, which not every browser sees to.
(() => {
    const watch = new ResizeObserver((changes) => {
        for (const { target } of changes) {
            if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
            else target.removeAttribute("tabindex");
        }
    });
    for (const box of document.querySelectorAll("main pre, main pre > code, .table-wrapper, .wide")) watch.observe(box);
})();

// mdBook's button for the sidebar is a label, which a keyboard does not reach.
(() => {
    const toggle = document.getElementById("mdbook-sidebar-toggle");
    if (!toggle) return;
    toggle.setAttribute("role", "button");
    toggle.tabIndex = 0;
    toggle.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        toggle.click();
    });
})();
