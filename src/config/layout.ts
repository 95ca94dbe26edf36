/** How events are stored: in queues and inboxes with a router between them, or in one part for each stream. */
export const LAYOUTS = ['queues', 'parts'] as const;
export type Layout = (typeof LAYOUTS)[number];
