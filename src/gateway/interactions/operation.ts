import { fail } from '../../fhir/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context, Handler, InteractionOf } from '../call.ts'
import type { Problem } from '../problem.ts'
import { everything } from './everything.ts'
import { validateResource } from './validate.ts'

export type Operation = InteractionOf<'operation'>
type OperationHandler = (context: Context, call: Call<Operation>) => Promise<Answer | Problem>

/** The operations that go through, by name and level (contract 5.2: refused unless listed). */
export const OPERATIONS: Readonly<Record<string, OperationHandler>> = {
  'Patient/id/$everything': everything,
  'type/$validate': validateResource,
  'type/id/$validate': validateResource,
}

export const operation: Handler<'operation'> = async (context, call) => {
  const { name, type, id } = call.interaction
  const level = id === undefined ? '' : '/id'
  const handler = OPERATIONS[`${type}${level}/${name}`] ?? (type && OPERATIONS[`type${level}/${name}`])
  return handler ? handler(context, call) : fail({ problem: 'unsupported-operation', name })
}
