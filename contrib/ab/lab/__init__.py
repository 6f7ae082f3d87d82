# SPDX-License-Identifier: MIT
"""The laboratory: measures front ends against each other and says how much of a difference is noise.

    setupfile   reads set-up files (libconfig's syntax)       stats      pure functions: estimates, tests, verdicts
    arms        what is compared, and its processes           analysis   runs in, comparisons and verdicts out
    machine     /proc: processor time, memory, environment    store      DIR: runs.tsv, env.json, raw files
    loads       ab, wrk, h2load, openloop, autocannon         tables     text tables and sentences
    runner      rounds: start, check, warm, measure, stop     plots, report_html, report_md: what DIR shows
    cli         the command line
"""
