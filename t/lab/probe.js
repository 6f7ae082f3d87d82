// SPDX-License-Identifier: MIT
// Put at the end of a copy of report.html: tries the page's own script, and leaves in <body data-seen> what the
// browser made of the page.
const errors = [];
addEventListener('error', (e) => errors.push(String(e.message)));
const key = document.querySelector('.key[data-series]');
key.click();
const dimmed = document.querySelectorAll('svg .dim').length;
key.click();
const th = [...document.querySelectorAll('#runs th')].find((t) => t.textContent === 'rps');
th.click();
const sorted = [...document.querySelectorAll('#runs td[data-column=rps]')].map((t) => Number(t.dataset.value));
const box = (e) => { const b = e.getBoundingClientRect(); return [b.width, b.height]; };
const outside = [...document.querySelectorAll('svg path, svg circle, svg rect, svg line')].filter((e) => {
  const b = e.getBoundingClientRect(), s = e.ownerSVGElement.getBoundingClientRect();
  return b.left < s.left - 2 || b.right > s.right + 2 || b.top < s.top - 2 || b.bottom > s.bottom + 2;
}).length;
document.body.dataset.seen = JSON.stringify({
  errors, dimmed, sorted, outside,
  undimmed: document.querySelectorAll('svg .dim').length,
  svg: [...document.querySelectorAll('svg')].map(box),
  titles: [...document.querySelectorAll('svg .title')].map((t) => t.textContent),
  wide: document.documentElement.scrollWidth,
  h1: document.querySelector('h1').textContent,
  drawn: [...document.querySelectorAll('svg')].map((s) => s.querySelectorAll('path, circle, rect').length),
  resources: performance.getEntriesByType('resource').length,
});
