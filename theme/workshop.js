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
