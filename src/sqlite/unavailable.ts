/** For cases in which the driver does not report an error of its own. */
export class DatabaseUnavailable extends Error {}
