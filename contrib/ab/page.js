// SPDX-License-Identifier: MIT
// The script of report.html: a click on a key dims its series, a click on a head of the runs sorts them.
for (const key of document.querySelectorAll('.key[data-series]')) {
  key.addEventListener('click', () => {
    const off = key.classList.toggle('dim');
    for (const e of document.querySelectorAll('svg .' + key.dataset.series)) e.classList.toggle('dim', off);
  });
}
for (const th of document.querySelectorAll('#runs th')) {
  th.style.cursor = 'pointer';
  th.addEventListener('click', () => {
    const body = document.querySelector('#runs tbody'), at = th.cellIndex;
    const of = (tr) => {
      const v = tr.cells[at].dataset.value;
      return v === undefined ? tr.cells[at].textContent : Number(v);
    };
    const rows = [...body.rows].sort((x, y) => (of(x) > of(y)) - (of(x) < of(y)));
    if (th.dataset.turned === '1') rows.reverse();
    th.dataset.turned = th.dataset.turned === '1' ? '0' : '1';
    body.append(...rows);
  });
}
