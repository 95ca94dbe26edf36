import { type Logger, pino } from 'pino';

export type { Logger };

/** The possible values of `SLUICE_LOG_LEVEL`, starting with the least verbose. */
export const LOG_LEVELS = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const;

/**
 * Creates the logger of a process. It writes JSON objects to standard output, one per line. Secrets and email addresses
 * must not be passed as fields. Redaction is only there as an additional protection.
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

/** Returns a logger that adds `role` to its lines. If `log` already has this field, it is only included once. */
export function logOfRole(log: Logger, role: string): Logger {
  return log.bindings().role === undefined ? log.child({ role }) : log;
}
