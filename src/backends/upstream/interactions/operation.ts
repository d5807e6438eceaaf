import { fail, findOperation } from '../../../fhir/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context, Handler, InteractionOf } from '../call.ts'
import type { Problem } from '../problem.ts'
import { docref, documentOf } from './document.ts'
import { passOperation, passTerminology } from './pass-operation.ts'

export type Operation = InteractionOf<'operation'>
type OperationHandler = (context: Context, call: Call<Operation>) => Promise<Answer | Problem>

/** The operations that are judged here, by name and level. */
const OPERATIONS: Readonly<Record<string, OperationHandler>> = {
  'DocumentReference/$docref': docref,
  'Patient/id/$summary': documentOf('Patient'),
  'Composition/id/$document': documentOf('Composition'),
}

export const operation: Handler<'operation'> = async (context, call) => {
  const handler = handlerOf(context, call)
  return handler
    ? handler(context, call)
    : fail({ problem: 'unsupported-operation', name: call.interaction.name })
}

function handlerOf({ operations }: Context, { interaction }: Call<Operation>): OperationHandler | undefined {
  const { name, type, id } = interaction
  const level = id === undefined ? '' : '/id'
  const own = OPERATIONS[`${type}${level}/${name}`] ?? (type && OPERATIONS[`type${level}/${name}`])
  if (own) return own
  const kind = findOperation(operations, interaction)?.needs.kind
  if (kind === 'whole-type') return passTerminology
  return kind === 'all-data' ? passOperation : undefined
}
