/** For a GET with side effects: a HEAD request would consume the code or the login for nothing. */
export const NO_HEAD_ROUTE = { exposeHeadRoute: false } as const
