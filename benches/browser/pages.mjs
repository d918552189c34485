// The pages that are compared: when their first view is shown, and which element zooms.

const memray = { isShown: () => document.querySelectorAll("#chart svg rect").length > 0 };

export const PAGES = {
  ours: {
    isShown: () =>
      document.getElementById("app")?.dataset.ready === "true" &&
      document.querySelector("#view")?.innerText.trim() !== "" &&
      ![...document.querySelectorAll("#view [role=status], #view [aria-busy=true]")].some(
        (element) => element.getAttribute("aria-busy") === "true" || element.textContent.trim().endsWith("…"),
      ),
    beforeZoom: async (page) => {
      await page.click("#tab-flame");
      await page.waitForSelector("#view[data-view=flame] canvas");
    },
    zoom: "#view canvas",
  },
  speedscope: {
    // Two canvases: one for the boxes, one for their names.
    isShown: () => document.querySelectorAll("canvas").length > 1,
    zoom: "canvas",
  },
  memray,
  "memray, temporal": memray,
};
