// Fills the places of the page.

const maps = content.map ? new Maps(content.map) : null;
const FILLS = { predictions, errors: worst, map: (place) => maps.build(place), learning };
for (const [name, fillPlace] of Object.entries(FILLS)) {
  const place = document.querySelector(`[data-fill="${name}"]`);
  if (place) fillPlace(place);
}
document.documentElement.dataset.ready = "yes";
