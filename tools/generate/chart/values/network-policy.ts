import { z } from 'zod';
import { list, NETWORK, ports, section } from './value-types.ts';

export const networkPolicy = section(
  'NetworkPolicies for each role, which deny all other connections. If a server runs in the cluster, add the ports of its pods, since most networks do not use the ports of its Service.',
  {
    enabled: z.boolean().default(false).describe('If true, NetworkPolicies are created.'),
    redisPorts: ports(
      'The Redis ports, in addition to those in redis.url. Set them if the URL is in a Secret.',
      [6379],
    ),
    kubernetesPorts: ports('The ports of the API server (for the controller and the facade).', [443, 6443]),
    httpsPorts: ports(
      'The ports of the identity provider (for the facade), in addition to those in oidc.issuers.',
      [443],
    ),
    smtpPorts: ports(
      'The ports of the mail server (for the controller), in addition to the one in smtp.url.',
      [25, 465, 587],
    ),
    collectorPorts: ports(
      'The ports of the OpenTelemetry collector, in addition to the one in tracing.endpoint.',
      [4318],
    ),
    clusterNetworks: list(
      z.string().regex(NETWORK),
      "Networks to which the dispatcher can't connect, except for networks in allowedNetworks.",
      ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', '169.254.0.0/16'],
    ),
    clusterNetworksV6: list(
      z.string().regex(NETWORK),
      "More networks to which the dispatcher can't connect. By default, these are the private networks of IPv6.",
      ['fc00::/7', 'fe80::/10'],
    ),
  },
);
