import packageJson from '../../package.json' with { type: 'json' };

/** The version of Sluice. This is also used for the `user-agent` header. */
export const VERSION: string = packageJson.version;
