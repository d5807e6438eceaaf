import { type Admitted, fullAccess, type Guard } from '../../consent/index.ts'

const everybody: Admitted = {
  allowed: true,
  decide: () => ({ allowed: true, access: fullAccess, by: 'public' }),
}

/** Lets everybody do everything. */
export const unguarded: Guard = { admit: () => everybody }
