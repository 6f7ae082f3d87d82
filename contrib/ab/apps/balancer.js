// SPDX-License-Identifier: MIT
// Starts the npm module `loadbalancer`: PORT=8090 TARGETS=8081,8082 MODULES=DIR node balancer.js
'use strict';
const path = require('path');
const fs = require('fs');
const { spawn } = require('child_process');

const config = path.join(process.cwd(), 'loadbalancer.json');
fs.writeFileSync(config, JSON.stringify({
  stickiness: false,
  sourcePort: Number(process.env.PORT),
  balancerCount: 1,
  targets: process.env.TARGETS.split(',').map((port) => ({ host: '127.0.0.1', port: Number(port) })),
}));
const main = path.join(process.env.MODULES, 'loadbalancer', 'index.js'); // bin/cli.js would make it a daemon
const child = spawn(process.execPath, [main, '--config', config], { stdio: 'inherit' });
child.on('exit', (code, signal) => process.exit(signal ? 1 : code || 0));
process.on('SIGTERM', () => child.kill('SIGTERM'));
