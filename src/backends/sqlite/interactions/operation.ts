import { fail } from '../../../fhir/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context, Handler, InteractionOf } from '../call.ts'
import type { Problem } from '../problem.ts'
import { everythingOf } from './everything.ts'
import { lastN } from './last-n.ts'
import { validateResource } from './validate.ts'

export type Operation = InteractionOf<'operation'>
type OperationHandler = (context: Context, call: Call<Operation>) => Answer | Problem

/** The operations that are done here, by name and level (contract 5.2: refused unless listed). */
const OPERATIONS: Readonly<Record<string, OperationHandler>> = {
  'Patient/id/$everything': everythingOf('Patient'),
  'Encounter/id/$everything': everythingOf('Encounter'),
  'Observation/$lastn': lastN,
  'type/$validate': validateResource,
  'type/id/$validate': validateResource,
}

export const operation: Handler<'operation'> = (context, call) => {
  const { name, type, id } = call.interaction
  const level = id === undefined ? '' : '/id'
  const handler = OPERATIONS[`${type}${level}/${name}`] ?? (type && OPERATIONS[`type${level}/${name}`])
  return handler ? handler(context, call) : fail({ problem: 'unsupported-operation', name })
}
