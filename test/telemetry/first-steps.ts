import { ALERT_RULES } from '../../tools/generate/alerts/alert-rules.ts';

/** The command or query in the first step of each runbook, by alert. */
export const FIRST_STEPS: Readonly<Record<string, string>> = Object.fromEntries(
  ALERT_RULES.map(({ name, steps: [first] }) => [name, /`([^`]+)`/.exec(first)?.[1] ?? '']),
);

const startingWith = (word: string) => [
  ...new Set(Object.values(FIRST_STEPS).filter(step => step.startsWith(`${word} `))),
];

/** Returns each shell command once. */
export const KUBECTL_COMMANDS = startingWith('kubectl');
export const REDIS_COMMANDS = startingWith('redis-cli');

/** Returns the queries for Prometheus. */
export const QUERIES = Object.values(FIRST_STEPS).filter(
  step => ![...KUBECTL_COMMANDS, ...REDIS_COMMANDS].includes(step),
);
