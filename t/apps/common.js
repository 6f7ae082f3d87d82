// SPDX-License-Identifier: MIT
// What the apps have in common: their page, and what a browser that opened it has to say.
'use strict';
const fs = require('fs');
const path = require('path');

// A request handler for plain http servers: GET / is `dir`/page.html, POST /seen is the page's report, which goes to
// the log as one line. Everything else: `next`, or 404.
exports.page = (dir, next) => (req, res) => {
  if (req.method === 'GET' && req.url === '/') {
    res.setHeader('Content-Type', 'text/html; charset=utf-8');
    res.end(fs.readFileSync(path.join(dir, 'page.html')));
  } else if (req.method === 'POST' && req.url === '/seen') {
    const parts = [];
    req.on('data', (b) => parts.push(b)).on('end', () => {
      console.log('SEEN ' + Buffer.concat(parts));
      res.end();
    });
  } else if (next) {
    next(req, res);
  } else {
    res.statusCode = 404;
    res.end();
  }
};

// The end of a client: what it found out, as the last line of its output.
exports.done = (result) => process.stdout.write(JSON.stringify(result) + '\n', () => process.exit(0));

exports.listen = (server) => server.listen(Number(process.env.PORT), '127.0.0.1');

// Runs an async client; what it returns is its result.
exports.main = (client) => client(process.argv[2]).then(exports.done, (e) => {
  console.error(e);
  process.exit(1);
});
