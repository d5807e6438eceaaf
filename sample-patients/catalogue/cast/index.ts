import { edgeCases } from './edge-cases.ts'
import { firstScreen } from './first-screen.ts'

/** Everybody who is always there, whatever the seed. */
export const cast = [...firstScreen, ...edgeCases]

export type { Age, CastEntry } from './entry.ts'
