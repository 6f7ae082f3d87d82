// SPDX-License-Identifier: MIT
// A Node server that answers from a Meteor bundle ($BUNDLE) by the rules that docs/meteor.md states, written as plainly
// as possible: what weir must agree with. What is no file of the bundle is "the app": it says what it was asked.
// $PREFIX is the path of ROOT_URL. SIGHUP reads the bundle again. Every answer says where it comes from: X-From: file or app.
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const path = require('path');

const TYPES = { '.txt': 'text/plain; charset=utf-8', '.html': 'text/html; charset=utf-8', '.json': 'application/json',
                '.map': 'application/json', '.jpg': 'image/jpeg', '.ico': 'image/x-icon', '.svg': 'image/svg+xml',
                '.svgz': 'image/svg+xml', '.woff2': 'font/woff2' };
const KINDS = { js: 'application/javascript; charset=UTF-8', 'dynamic js': 'application/javascript; charset=UTF-8',
                css: 'text/css; charset=UTF-8', json: 'application/json; charset=UTF-8' };

let programs; // name -> Map(decoded path -> entry)

const pathOf = (url) => decodeURIComponent(url.split(/[?#]/)[0].replace(/ /g, '%20'));

function read() {
  const root = path.join(process.env.BUNDLE, 'programs');
  programs = new Map();
  for (const name of JSON.parse(fs.readFileSync(path.join(root, 'server', 'config.json'))).clientArchs) {
    const control = path.join(root, name, 'program.json');
    if (!fs.existsSync(control)) continue;
    const files = new Map();
    for (const item of JSON.parse(fs.readFileSync(control)).manifest) {
      if (item.where !== 'client' || !item.url) continue;
      files.set(pathOf(item.url), { ...item, file: path.join(root, name, item.path) });
      if (item.sourceMap) {
        files.set(pathOf(item.sourceMapUrl), { cacheable: true, file: path.join(root, name, item.sourceMap) });
      }
    }
    programs.set(name, files);
  }
}

// "modern" here is a user agent that says so: what it means is each app's own affair.
function find(raw, agent) {
  let decoded;
  try { decoded = decodeURIComponent(raw); } catch (e) { return null; }
  const first = raw.split('/')[1];
  let order = /modern/.test(agent) ? ['web.browser', 'web.browser.legacy'] : ['web.browser.legacy', 'web.browser'];
  let other = raw;
  if (first.startsWith('__') && programs.has('web.' + first.slice(2))) {
    order = ['web.' + first.slice(2)];
    other = raw.slice(first.length + 1);
    if (other === '/manifest.json') return null;
  }
  const chosen = order.find((name) => programs.has(name));
  for (const name of [chosen, ...[...programs.keys()].filter((n) => n !== chosen)]) {
    const files = programs.get(name);
    for (const key of [decoded, other]) if (files.has(key)) return files.get(key);
  }
  return null;
}

function app(req, res) {
  const body = `app: ${req.method} ${req.url}`;
  res.writeHead(200, { 'X-From': 'app', 'Content-Type': 'text/html; charset=utf-8',
                       'Content-Length': Buffer.byteLength(body) });
  res.end(body);
}

function file(req, res, entry) {
  const bytes = fs.readFileSync(entry.file);
  const tag = '"' + (entry.hash || crypto.createHash('md5').update(bytes).digest('hex')) + '"';
  res.setHeader('X-From', 'file');
  res.setHeader('ETag', tag);
  res.setHeader('Accept-Ranges', 'bytes');
  res.setHeader('Cache-Control', 'public, max-age=' + (entry.cacheable ? 365 * 86400 : 0));
  if (entry.sourceMapUrl) res.setHeader('X-SourceMap', entry.sourceMapUrl);
  if ((req.headers['if-none-match'] || '').split(/,\s*/).some((t) => t === '*' || t.replace(/^W\//, '') === tag)) {
    res.writeHead(304);
    return res.end();
  }
  res.setHeader('Content-Type', KINDS[entry.type] || TYPES[path.extname(entry.file)] || 'application/octet-stream');
  let from = 0, to = bytes.length;
  const range = /^bytes=(\d*)-(\d*)$/.exec(req.headers.range || '');
  if (range && req.method === 'GET' && (req.headers['if-range'] || tag) === tag) {
    if (range[1] === '') from = Math.max(0, bytes.length - Number(range[2]));
    else from = Number(range[1]);
    if (range[1] !== '' && range[2] !== '') to = Math.min(to, Number(range[2]) + 1);
    if (from >= bytes.length) {
      res.writeHead(416, { 'Content-Range': `bytes */${bytes.length}` });
      return res.end();
    }
    res.statusCode = 206;
    res.setHeader('Content-Range', `bytes ${from}-${to - 1}/${bytes.length}`);
  }
  res.setHeader('Content-Length', to - from);
  res.end(req.method === 'HEAD' ? undefined : bytes.subarray(from, to));
}

read();
process.on('SIGHUP', () => { read(); console.log('read'); });
http.createServer((req, res) => {
  const prefix = process.env.PREFIX || '';  // of ROOT_URL: nothing outside it is a file
  const url = req.url.split('?')[0];
  const entry = url.startsWith(prefix + '/') ? find(url.slice(prefix.length), req.headers['user-agent'] || '') : null;
  if (entry === null) return app(req, res);
  if (req.method !== 'GET' && req.method !== 'HEAD') {
    res.writeHead(req.method === 'OPTIONS' ? 200 : 405, { 'X-From': 'file', Allow: 'OPTIONS, GET, HEAD' });
    return res.end();
  }
  return file(req, res, entry);
}).listen(process.env.PORT, '127.0.0.1');
