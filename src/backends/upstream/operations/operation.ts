import { findOperation } from '../../../fhir/index.ts'
import type { FhirResponse, Operation } from '../../../fhir-api/index.ts'
import type { Call, Context } from '../call.ts'
import type { Problem } from '../problem.ts'
import { docref, documentOf } from './document.ts'
import { passOperation, passTerminology } from './pass-operation.ts'

type OperationHandler = (context: Context, call: Call<Operation>) => Promise<FhirResponse | Problem>

/** The operations whose response is checked here, by name and level. */
const OPERATIONS: Readonly<Record<string, OperationHandler>> = {
  'DocumentReference/$docref': docref,
  'Patient/id/$summary': documentOf('Patient'),
  'Composition/id/$document': documentOf('Composition'),
}

/** Performs an operation that the upstream has and the API does not; undefined where it is not offered. */
export function performOperation(
  context: Context,
  call: Call<Operation>,
): Promise<FhirResponse | Problem> | undefined {
  return findHandler(context, call)?.(context, call)
}

function findHandler(
  { operations }: Context,
  { interaction }: Call<Operation>,
): OperationHandler | undefined {
  const { name, type, id } = interaction
  const level = id === undefined ? '' : '/id'
  const own = OPERATIONS[`${type}${level}/${name}`] ?? (type && OPERATIONS[`type${level}/${name}`])
  if (own) return own
  const kind = findOperation(operations, interaction)?.needs.kind
  if (kind === 'whole-type') return passTerminology
  return kind === 'all-data' ? passOperation : undefined
}
