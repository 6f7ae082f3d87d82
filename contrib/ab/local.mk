# The laboratory: what `weir ab` runs, below $(libexecdir)/weir/ab as it lies in contrib/ab.
AM_CPPFLAGS += -DWEIR_LIBEXECDIR='"$(libexecdir)/weir"'

abdir = $(libexecdir)/weir/ab
ab_PROGRAMS = contrib/ab/openloop
contrib_ab_openloop_SOURCES = contrib/ab/openloop.c
dist_ab_SCRIPTS = contrib/ab/install contrib/ab/main.py
EXTRA_DIST += contrib/ab/benchmarks
dist_ab_DATA = contrib/ab/page.css contrib/ab/page.js contrib/ab/wrk.lua

ablabdir = $(abdir)/lab
dist_ablab_DATA = \
	contrib/ab/lab/__init__.py \
	contrib/ab/lab/analysis.py \
	contrib/ab/lab/answers.py \
	contrib/ab/lab/arms.py \
	contrib/ab/lab/cli.py \
	contrib/ab/lab/imports.py \
	contrib/ab/lab/loads.py \
	contrib/ab/lab/machine.py \
	contrib/ab/lab/plots.py \
	contrib/ab/lab/report.py \
	contrib/ab/lab/report_html.py \
	contrib/ab/lab/report_md.py \
	contrib/ab/lab/runner.py \
	contrib/ab/lab/setupfile.py \
	contrib/ab/lab/stats.py \
	contrib/ab/lab/store.py \
	contrib/ab/lab/svg.py \
	contrib/ab/lab/tables.py

abappsdir = $(abdir)/apps
dist_abapps_DATA = \
	contrib/ab/apps/balancer.js \
	contrib/ab/apps/files.py \
	contrib/ab/apps/hello.js \
	contrib/ab/apps/hello.ru

abdemodir = $(abdir)/demo-app
dist_abdemo_DATA = contrib/demo-app/app.js contrib/demo-app/bundle.js

# Set-ups, and the configurations that they start servers with.
absetupsdir = $(abdir)/setups
dist_absetups_DATA = \
	conf/setups/balancers.setup \
	conf/setups/demo.setup \
	conf/setups/files.setup \
	conf/setups/four-nodes.inc \
	conf/setups/generators.setup \
	conf/setups/haproxy-redispatch.setup \
	conf/setups/meteor-1cpu.setup \
	conf/setups/meteor-2cpu.setup \
	conf/setups/meteor-fronts.setup \
	conf/setups/meteor-proxy.conf \
	conf/setups/meteor-static.conf \
	conf/setups/meteor.inc \
	conf/setups/node-alone.setup \
	conf/setups/node-balance.conf \
	conf/setups/node-cluster.setup \
	conf/setups/nodes-down.setup \
	conf/setups/nodes-leaving.inc \
	conf/setups/npm-loadbalancer.setup \
	conf/setups/origin.inc \
	conf/setups/pinned-busy.setup \
	conf/setups/pinned-empty.setup \
	conf/setups/pinned.conf \
	conf/setups/pinned.inc \
	conf/setups/proxy.setup \
	conf/setups/stacks.setup \
	conf/setups/weir-redispatch.setup

absetupfilesdir = $(absetupsdir)/files
dist_absetupfiles_DATA = \
	conf/setups/files/caddy-files.conf \
	conf/setups/files/caddy-proxy.conf \
	conf/setups/files/h2o-files.conf \
	conf/setups/files/h2o-proxy.conf \
	conf/setups/files/haproxy-proxy.cfg \
	conf/setups/files/haproxy-redispatch.cfg \
	conf/setups/files/haproxy-three.cfg \
	conf/setups/files/lighttpd-files.conf \
	conf/setups/files/lighttpd-proxy.conf \
	conf/setups/files/nginx-files.conf \
	conf/setups/files/nginx-meteor.conf \
	conf/setups/files/nginx-origin.conf \
	conf/setups/files/nginx-pinned.conf \
	conf/setups/files/nginx-proxy.conf \
	conf/setups/files/weir-files.conf \
	conf/setups/files/weir-pinned.conf \
	conf/setups/files/weir-proxy.conf
