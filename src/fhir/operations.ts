import type { Letter } from '../scope/index.ts'
import type { Interaction } from './interaction.ts'

type Operation = Extract<Interaction, { readonly kind: 'operation' }>

/** An operation that a server offers: where it can be called, and what the caller needs for it. */
export interface OperationRule {
  /** With its `$`. */
  readonly name: string
  readonly level: 'system' | 'type' | 'instance'
  readonly types: readonly string[] | 'any'
  readonly needs: OperationNeeds
}

/** All, or any, of these permissions on the type. The response is limited by the grant besides. */
export interface OperationNeeds {
  readonly kind: 'all' | 'any'
  readonly permissions: readonly [Letter, ...Letter[]]
}

const RECORD: OperationNeeds = { kind: 'all', permissions: ['r', 's'] }

/** What the embedded server offers, and what a server with the library may. */
export const operations: readonly OperationRule[] = [
  { name: '$everything', level: 'instance', types: ['Patient'], needs: RECORD },
  // Touches no stored resource: whoever may do anything with the type may ask.
  {
    name: '$validate',
    level: 'type',
    types: 'any',
    needs: { kind: 'any', permissions: ['c', 'r', 'u', 'd', 's'] },
  },
  { name: '$validate', level: 'instance', types: 'any', needs: { kind: 'all', permissions: ['r'] } },
]

export function findOperation(
  rules: readonly OperationRule[],
  { name, type, id }: Pick<Operation, 'name' | 'type' | 'id'>,
): OperationRule | undefined {
  const level = type === undefined ? 'system' : id === undefined ? 'type' : 'instance'
  return rules.find(
    rule =>
      rule.name === name &&
      rule.level === level &&
      (type === undefined || rule.types === 'any' || rule.types.includes(type)),
  )
}

/** The text of the response to an operation that no grant would permit. */
export function unsupportedOperation(name: string): string {
  return `The operation ${name} is not supported here.`
}
