import { ENVIRONMENT } from '../../../../src/config/environment.ts';
import { TRACING_ENVIRONMENT } from '../../../../src/config/tracing-environment.ts';

/** The variables that are mentioned in descriptions, and the values that set them. */
const VALUE_OF: Readonly<Record<string, string>> = {
  SLUICE_ALLOWED_NETWORKS: 'allowedNetworks',
  SLUICE_REDIS_SENTINEL_PASSWORD_FILE: 'redis.sentinel.passwordSecret',
  SLUICE_SMTP_URL: 'smtp.url',
  SLUICE_TRUSTED_PROXIES: 'trustedProxies',
};

/** Returns the description of a variable, using the terms of the chart. */
export const meaningOf = (variable: keyof typeof ENVIRONMENT) =>
  (ENVIRONMENT[variable].description ?? '')
    .replace(/^A comma-separated list of /, 'A list of ')
    .replace('443,8443', '[443, 8443]')
    .replace(', or none if', ', or [none] if')
    .replace(' Set it for both the controller and the dispatcher.', '')
    .replaceAll(/SLUICE_[A-Z_]+/g, name => VALUE_OF[name] ?? name);

/** Returns the description of a variable for tracing. The chart has no value for the next variable. */
export const tracingMeaning = (variable: string) =>
  (TRACING_ENVIRONMENT[variable]?.meaning ?? '').replace(
    'To enable tracing, set this variable or the next one.',
    'By default, tracing is disabled.',
  );
