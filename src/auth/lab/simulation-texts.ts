import { type LabSimulation, SIMULATIONS } from './settings.ts'

/** Where the simulated errors happen, in the order of a launch. */
const PLACES = {
  authorize: ['Authorization', 'The browser returns to the redirect URI with error instead of code.'],
  token: ['Token request', 'The exchange of the code fails.'],
  refresh: ['Refresh', 'The launch works, and every refresh fails.'],
  'access-token': ['Access token', 'The token response is valid, but the token is not.'],
  fhir: ['FHIR requests', 'The launch works, but every FHIR request fails.'],
} as const

type ErrorName = LabSimulation extends `${string}:${infer Name}` ? Name : never

const TEXTS: Readonly<Record<ErrorName, string>> = {
  invalid_request: 'A parameter is missing, repeated or malformed.',
  unauthorized_client: 'The app may not use this kind of request.',
  access_denied: 'The user chose “Don’t allow”, or left the sign-in.',
  unsupported_response_type: 'The server does not know the response_type.',
  invalid_scope: 'A scope is unknown, or the app may not have it.',
  server_error: 'The server failed. The app may try again.',
  temporarily_unavailable: 'The server is overloaded or in maintenance. The app may try again later.',
  interaction_required: 'With prompt=none: the user has to choose something.',
  login_required: 'With prompt=none: the user has to sign in.',
  consent_required: 'With prompt=none: the user has to allow the access.',
  invalid_client: 'The server does not accept the secret or the assertion of the app (401).',
  invalid_grant: 'The code or the refresh token has expired, was used, or belongs to another app.',
  unsupported_grant_type: 'The server does not know the grant_type.',
  500: 'An unexpected failure of the server. The app should say so, and offer to try again.',
  slow: 'The response takes 5 seconds longer. The app should show that it waits.',
  expired: 'The access token has already expired: the first FHIR request gets 401.',
  'bad-signature': 'The signature is wrong: the FHIR server refuses the token with 401.',
  401: 'The token is not accepted, as after a revocation. The app should refresh it, or launch again.',
  403: 'The token does not permit the request. The app should show what is missing.',
  429: 'Too many requests. The app should wait for the time in Retry-After.',
}

/** The simulated errors by place, each with a sentence. */
export const SIMULATION_GROUPS = Object.entries(PLACES).map(([place, [title, text]]) => ({
  title,
  text,
  simulations: SIMULATIONS.filter(name => name.startsWith(`${place}:`)).map(name => ({
    name,
    text: TEXTS[name.slice(place.length + 1) as ErrorName],
  })),
}))
