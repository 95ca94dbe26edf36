import type { AlertGroup, AlertRule } from './alert-rule.ts';
import { control, facade } from './control.ts';
import { delivery, ingress, routing } from './events.ts';
import { processes, redis } from './processes.ts';

/** All alerts included with Sluice, the most fundamental alerts first. */
export const ALERT_GROUPS: readonly AlertGroup[] = [processes, redis, ingress, routing, delivery, control, facade];

export const ALERT_RULES: readonly AlertRule[] = ALERT_GROUPS.flatMap(({ rules }) => rules);
