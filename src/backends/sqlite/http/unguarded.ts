import { type Authenticated, type Authenticator, fullAccess } from '../../../smart/index.ts'

const everybody: Authenticated = {
  allowed: true,
  decide: () => ({ allowed: true, access: fullAccess, by: 'public' }),
}

/** Lets everybody do everything. */
export const unguarded: Authenticator = { authenticate: () => everybody }
