/** The sections of the reference, with their descriptions. */
export const TAGS = {
  Streams: 'The streams that a producer publishes.',
  Integrations: "Connections between a producer and its partners, from the producer's view.",
  Invitations: 'Used by a partner to accept or decline an invitation of a producer.',
  Workspaces: 'The workspaces of the caller. A workspace publishes streams, receives events, or both.',
  'Ingress keys': 'The keys with which a workspace publishes events.',
  Accounts: 'The accounts that pay for workspaces, with their members, limits, and tokens.',
  Packages: 'Named sets of streams, which can be blocked together.',
  Blocks: 'Pause a stream or a package for an integration.',
  Activations: 'Open a group key for an integration. Events without an activation are not delivered.',
  Events: 'Find out where an event was routed to, and why it did not arrive.',
  Metrics: 'How many events were published, routed, and delivered over time.',
  Receiving: "Integrations from the partner's view: the catalog, subscriptions, endpoints, and signing secrets.",
  Inbox:
    'The events that were routed to the subscriptions of an integration. They can be pulled, skipped, and replayed.',
} as const satisfies Readonly<Record<string, string>>;

export type Tag = keyof typeof TAGS;
