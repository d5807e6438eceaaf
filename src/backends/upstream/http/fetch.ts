/** How the gateway reaches what is not the upstream: the token endpoint that gives it its own credentials. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>
