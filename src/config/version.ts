import packageJson from '../../package.json' with { type: 'json' };

/** The version of Sluice, which is also used in `user-agent`. */
export const VERSION: string = packageJson.version;
