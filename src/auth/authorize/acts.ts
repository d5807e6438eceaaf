/** For a GET that may end in a code: a HEAD would use it up for a response that nobody reads. */
export const ACTS = { exposeHeadRoute: false } as const
