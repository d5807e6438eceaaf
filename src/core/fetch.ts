/** Sends a request to another server. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>
