// SPDX-License-Identifier: MIT
// Uses the Express app as a browser's script would, with fetch: node client.js BASE-URL. Prints all it was told, so
// that what comes through weir can be compared with what the app says directly.
'use strict';
const crypto = require('crypto');
const { main } = require('../common');

const brief = async (r) => ({
  status: r.status, type: r.headers.get('content-type'), etag: r.headers.get('etag'),
  cache: r.headers.get('cache-control'), range: r.headers.get('content-range'), body: await r.text(),
});

function form(size) {
  const f = new FormData();
  f.append('title', 'höhe "ü"\r\n2');
  f.append('title', 'twice');
  f.append('a', new Blob([Buffer.alloc(size, 'weir ')], { type: 'text/plain' }), 'a b.txt');
  f.append('b', new Blob([crypto.createHash('sha512').update('b').digest()]), 'ß"%.bin');
  f.append('empty', new Blob([]), 'empty');
  return f;
}

main(async (base) => {
  const out = {};
  const get = (path, options) => fetch(base + path, { redirect: 'manual', ...options });
  const post = (path, body, headers) => get(path, { method: 'POST', body, headers });
  out.who = await (await get('/whoami?a=1&a=%20')).json();

  const login = await get('/login');
  const set = login.headers.getSetCookie();
  out.login = [login.status, login.headers.get('location'), set];
  const cookie = set.map((c) => c.split(';')[0]).join('; ');
  out.me = await (await get(login.headers.get('location'), { headers: { cookie } })).json();

  const json = { 'content-type': 'application/json' };
  out.followed = await brief(await fetch(base + '/moved', { method: 'POST', body: '{"n":[1,"é"]}', headers: json }));
  out.form = await (await post('/form', new URLSearchParams('a[b]=1&a[c]=%E2%82%AC&d='))).json();
  out.badJson = await brief(await post('/echo', '{"n":', json));
  out.tooLarge = await brief(await post('/echo', JSON.stringify('x'.repeat(200000)), json));

  for (const [name, path, size] of [['small', '/memory', 100], ['memory', '/memory', 3 << 20], ['disk', '/disk', 5 << 20]])
    out[name] = await (await post(path, form(size))).json();
  out.limit = await brief(await post('/memory', form(9 << 20)));

  out.css = await brief(await get('/static/app.css'));
  out.not = await brief(await get('/static/app.css', { headers: { 'if-none-match': out.css.etag, 'cache-control': 'max-age=0' } }));
  out.part = await brief(await get('/static/long.txt', { headers: { range: 'bytes=10-19' } }));
  out.none = await brief(await get('/static/none'));
  out.folder = (await get('/static')).headers.get('location');
  out.boom = await brief(await get('/boom'));
  out.late = await brief(await get('/late'));
  out.cut = await get('/cut').then((r) => r.text()).catch((e) => e.name);
  out.missing = await brief(await get('/missing'));
  out.head = await brief(await get('/static/long.txt', { method: 'HEAD' }));
  out.options = (await get('/echo', { method: 'OPTIONS' })).headers.get('allow');
  return out;
});
