// SPDX-License-Identifier: MIT
// Writes a Meteor-shaped bundle: programs/web.browser with program.json, a style sheet and a script named by their
// SHA-1 (40 hex digits), a package, and app/, the public folder, with a picture of exactly 100,018 bytes.
//     node bundle.js DIR
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');

const IMAGE_SIZE = 100018;

const css = `body { font: 16px/1.5 system-ui, sans-serif; max-width: 42em; margin: 2em auto; padding: 0 1em; }
img { width: 100%; image-rendering: pixelated; border-radius: 6px; }
@media (prefers-color-scheme: dark) { body { background: #111; color: #ddd; } }
`;

// Runs in the browser: shows what arrives over the WebSocket and how long an echo takes.
const client = `'use strict';
(function connect() {
  const out = document.getElementById('ws');
  const ws = new WebSocket((location.protocol === 'https:' ? 'wss://' : 'ws://') + location.host + '/websocket');
  let sent = 0, echo = '';
  ws.onmessage = (e) => {
    const m = JSON.parse(e.data);
    if (m.echo !== undefined) echo = ', an echo takes ' + (performance.now() - m.echo).toFixed(1) + ' ms';
    else { out.textContent = 'tick ' + m.tick + ' of ' + m.time + echo; ws.send(JSON.stringify(sent = performance.now())); }
  };
  ws.onclose = () => { out.textContent = 'closed, trying again'; setTimeout(connect, 1000); };
})();
`;

// A baseline JPEG (ITU T.81) whose 8x8 blocks have one colour each: only the DC coefficient is coded, and every
// Huffman code has four bits. A comment segment makes up the exact size.
function jpeg(columns, rows, colour, size) {
  const bytes = [];
  const u16 = (n) => [n >> 8, n & 255];
  const segment = (marker, body) => bytes.push(0xff, marker, ...u16(body.length + 2), ...body);
  const categories = [...Array(12).keys()];
  bytes.push(0xff, 0xd8);
  segment(0xdb, [0, ...Array(64).fill(8)]);
  segment(0xc0, [8, ...u16(rows * 8), ...u16(columns * 8), 3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]);
  segment(0xc4, [0x00, 0, 0, 0, 12, ...Array(12).fill(0), ...categories]); // DC: the category is its own code
  segment(0xc4, [0x10, 1, ...Array(15).fill(0), 0]);                      // AC: "end of block" is the bit 0
  segment(0xda, [3, 1, 0, 2, 0, 3, 0, 0, 63, 0]);
  let acc = 0, n = 0;
  const put = (value, bits) => {
    for (let i = bits - 1; i >= 0; i--) {
      acc = (acc << 1) | ((value >> i) & 1);
      if (++n === 8) {
        bytes.push(acc);
        if (acc === 0xff) bytes.push(0);
        acc = n = 0;
      }
    }
  };
  const last = [0, 0, 0];
  for (let y = 0; y < rows; y++) {
    for (let x = 0; x < columns; x++) {
      const [r, g, b] = colour(x / columns, y / rows);
      const ycc = [0.299 * r + 0.587 * g + 0.114 * b - 128, -0.1687 * r - 0.3313 * g + 0.5 * b,
                   0.5 * r - 0.4187 * g - 0.0813 * b];
      ycc.forEach((v, i) => {
        const dc = Math.round(v); // eight times the mean, over a quantiser of eight
        const diff = dc - last[i];
        last[i] = dc;
        const category = diff === 0 ? 0 : 32 - Math.clz32(Math.abs(diff));
        put(category, 4);
        put(diff < 0 ? diff + (1 << category) - 1 : diff, category);
        put(0, 1);
      });
    }
  }
  if (n) put((1 << (8 - n)) - 1, 8 - n);
  bytes.push(0xff, 0xd9);
  let short = size - bytes.length;
  if (short < 4) throw new Error('the picture has ' + bytes.length + ' bytes, more than ' + (size - 4));
  const comments = [];
  while (short > 0) { // a segment takes 4 to 65537 bytes
    const take = short <= 65537 ? short : Math.min(65537, short - 4);
    comments.push(0xff, 0xfe, ...u16(take - 2), ...Array(take - 4).fill(0x20));
    short -= take;
  }
  return Buffer.from([...bytes.slice(0, 2), ...comments, ...bytes.slice(2)]);
}

// Water above the crest of a weir, and white water below it.
function weir(x, y) {
  const wave = Math.sin(40 * x + 6 * Math.sin(9 * y)) * Math.sin(30 * y + 5 * x);
  if (y < 0.4) return [40 + 30 * y + 8 * wave, 110 + 60 * y + 10 * wave, 150 + 70 * y + 14 * wave];
  if (y < 0.45) return [70, 62, 54];
  const foam = 0.5 + 0.5 * Math.sin(70 * x + 12 * Math.sin(20 * y)) * Math.cos(16 * y);
  return [90 + 150 * foam * y, 150 + 95 * foam * y, 180 + 70 * foam * y];
}

function write(dir) {
  const root = path.join(dir, 'programs', 'web.browser');
  const manifest = [];
  const add = (type, file, url, content) => {
    const where = path.join(root, file);
    const hash = crypto.createHash('sha1').update(content).digest('hex');
    fs.mkdirSync(path.dirname(where), { recursive: true });
    fs.writeFileSync(where, content);
    manifest.push({ path: file, where: 'client', type, url, size: Buffer.byteLength(content), hash });
  };
  for (const [type, content] of [['css', css], ['js', client]]) {
    const hash = crypto.createHash('sha1').update(content).digest('hex');
    add(type, `${hash}.${type}`, `/${hash}.${type}`, content);
  }
  add('asset', 'packages/demo/readme.txt', '/packages/demo/readme.txt', 'A file of a package.\n');
  add('asset', 'app/image.jpg', '/image.jpg', jpeg(224, 168, weir, IMAGE_SIZE));
  fs.writeFileSync(path.join(root, 'program.json'), JSON.stringify({ format: 'web-program-pre1', manifest }, null, 2));
}

write(process.argv[2]);
