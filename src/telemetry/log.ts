import { type Logger, pino } from 'pino';

export type { Logger };

/** Values of `SLUICE_LOG_LEVEL`, least verbose first. */
export const LOG_LEVELS = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const;

/**
 * Creates the logger for a process, which writes one JSON object per line to standard output. Secrets and email
 * addresses must not be passed as fields. Redaction is only there as an additional protection.
 */
export function createLogger(options: { level: (typeof LOG_LEVELS)[number]; role?: string }): Logger {
  return pino({
    level: options.level,
    base: options.role === undefined ? null : { role: options.role },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: label => ({ level: label }) },
    redact: {
      paths: [
        '*.authorization',
        '*.token',
        '*.secret',
        '*.key',
        '*.password',
        '*.invitedEmail',
        'err.response',
        'err.headers',
        'err.body',
      ],
      censor: '[redacted]',
    },
  });
}

/** Returns a logger whose lines contain `role` once, whether `log` already has this field or not. */
export function logOfRole(log: Logger, role: string): Logger {
  return log.bindings().role === undefined ? log.child({ role }) : log;
}
