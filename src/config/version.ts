import packageJson from '../../package.json' with { type: 'json' };

/** The Sluice version. It is also included in the `user-agent` header. */
export const VERSION: string = packageJson.version;
