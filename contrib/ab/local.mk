# The laboratory: what `weir ab` runs, below $(libexecdir)/weir/ab as it lies in contrib/ab.
AM_CPPFLAGS += -DWEIR_LIBEXECDIR='"$(libexecdir)/weir"'

abdir = $(libexecdir)/weir/ab
ab_PROGRAMS = contrib/ab/openloop
contrib_ab_openloop_SOURCES = contrib/ab/openloop.c
dist_ab_SCRIPTS = contrib/ab/install contrib/ab/main.py
dist_ab_DATA = contrib/ab/wrk.lua

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
	contrib/ab/apps/hello.js

abdemodir = $(abdir)/demo-app
dist_abdemo_DATA = contrib/demo-app/app.js contrib/demo-app/bundle.js

# Set-ups, and the configurations that they start servers with.
absetupsdir = $(abdir)/setups
dist_absetups_DATA = 
