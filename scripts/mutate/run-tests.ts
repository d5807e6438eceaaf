/** Loaded before the tests of one mutant (`node --import`): the mutant is in `MUTANT`. */
import { loadMutant } from './hooks.ts'

if (process.env.MUTANT !== undefined) loadMutant(JSON.parse(process.env.MUTANT))
