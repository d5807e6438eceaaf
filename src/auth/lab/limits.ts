/** Clients that the lab registered for launch URLs. */
export const MAX_CLIENTS = 100
