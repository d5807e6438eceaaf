import type { Settings } from '../config/index.ts'
import { gatewayOperations, type OperationRule, operations, parsePassedOperation } from '../fhir/index.ts'
import { CommandFailure } from './command.ts'

/** The operations that the FHIR server of these settings offers: the embedded one, or the gateway. */
export function findOfferedOperations({ fhir }: Settings): readonly OperationRule[] {
  return fhir.upstreamUrl === undefined
    ? operations
    : gatewayOperations(fhir.upstream.operations.map(readOperation))
}

function readOperation(text: string): OperationRule {
  const rule = parsePassedOperation(text)
  if (!rule)
    throw new CommandFailure(
      `Cannot use SMART_FHIR_UPSTREAM_OPERATIONS: ${text} is not an operation, or its type is not in R4`,
    )
  return rule
}
