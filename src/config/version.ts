import packageJson from '../../package.json' with { type: 'json' };

/** Version of the product, as packages and `user-agent` have it. */
export const VERSION: string = packageJson.version;
