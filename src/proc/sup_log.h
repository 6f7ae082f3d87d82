/* SPDX-License-Identifier: MIT */
/* The supervisor's own lines in the error log. */
#ifndef PROC_SUP_LOG_H
#define PROC_SUP_LOG_H

#include "base/log.h"

/* From now on log_write goes to this error log (a path, or "stderr"; borrowed until the next call). NULL: as before. */
void sup_log_use(const char *path, enum log_style style);

#endif
