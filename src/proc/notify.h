/* SPDX-License-Identifier: MIT */
/* What systemd, or whoever speaks its protocol, wants to know of a service. */
#ifndef PROC_NOTIFY_H
#define PROC_NOTIFY_H

/* Tells systemd what the service does: "READY=1", "STOPPING=1", ... (sd_notify(3)). Nothing happens without
 * $NOTIFY_SOCKET. */
void notify(const char *state);
/* RELOADING=1 with the time stamp that Type=notify-reload asks for; READY=1 ends it. */
void notify_reloading(void);

#endif
