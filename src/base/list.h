/* SPDX-License-Identifier: MIT */
/* Intrusive doubly linked ring: a head is a node that points at itself when the list is empty. Nothing is owned. */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"

struct list {
    struct list *next, *prev;
};

static inline void list_init(struct list *head)
{
    head->next = head->prev = head;
}

static inline bool list_is_empty(const struct list *head)
{
    return head->next == head;
}

/* Is this node on a list? A node must have been list_init()ed or zeroed before it is asked. */
static inline bool list_is_linked(const struct list *node)
{
    return node->next != NULL && node->next != node;
}

static inline void list_append(struct list *head, struct list *node)
{
    node->prev = head->prev;
    node->next = head;
    head->prev->next = node;
    head->prev = node;
}

static inline void list_prepend(struct list *head, struct list *node)
{
    list_append(head->next, node);
}

/* Takes the node off its list and leaves it initialised; harmless when it is on none. */
static inline void list_remove(struct list *node)
{
    if (node->next == NULL)
        return;
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

#define list_entry(node, type, member) container_of(node, type, member)
#define list_each(it, head) for (struct list *it = (head)->next; it != (head); it = it->next)
/* Safe against removal of the current node only. */
#define list_each_safe(it, tmp, head) \
    for (struct list *it = (head)->next, *tmp = it->next; it != (head); it = tmp, tmp = it->next)

#endif
