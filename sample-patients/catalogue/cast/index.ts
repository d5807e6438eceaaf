import { edgeCases } from './edge-cases.ts'
import { firstScreen } from './first-screen.ts'

/** The patients that do not depend on the seed. */
export const cast = [...firstScreen, ...edgeCases]

export type { Age, CastEntry } from './entry.ts'
