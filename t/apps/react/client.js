// SPDX-License-Identifier: MIT
// node client.js BASE-URL: reads the page up to the fallback, only then lets the list be made, and reads the rest.
'use strict';
const { main } = require('../common');

main(async (base) => {
  const key = 'k' + process.pid + Math.random();
  const r = await fetch(base + '/page?' + key, { headers: { 'Accept-Encoding': process.env.ENCODING || 'identity' } });
  const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
  let html = '';
  while (!html.includes('wait …'))
    html += (await reader.read()).value;
  const before = html.includes('entry');
  await fetch(base + '/go?' + key, { method: 'POST' });
  for (let piece = await reader.read(); !piece.done; piece = await reader.read())
    html += piece.value;
  return { encoding: r.headers.get('content-encoding'), before, html };
});
