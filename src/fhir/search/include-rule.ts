import { findSearchParameter, isResourceType, listSearchParameters, resourceTypes } from '../definitions.ts'

/** `_include=MedicationRequest:requester:Practitioner` and the like. */
export interface IncludeRule {
  /** From a match to the resources it refers to, or to those that refer to it (`_revinclude`). */
  readonly direction: 'forward' | 'reverse'
  /** Also from included resources (`:iterate`). */
  readonly iterate: boolean
  /** The type with the references. */
  readonly source: string
  readonly parameters: readonly string[]
  /** The only type they may refer to, if named. */
  readonly target: string | undefined
  /** One of the rules that `_revinclude=*` stands for. */
  readonly isOfStar?: true
}

/** The rules of an include in a search of these types, or why there are none. */
export function parseInclude(
  name: string,
  value: string,
  types: readonly string[],
): readonly IncludeRule[] | string {
  const [direction, modifier] = name.split(':')
  // With :iterate the types are not known beforehand.
  if (value === '*' && modifier === undefined)
    return direction === '_include' ? types.flatMap(listReferences) : types.flatMap(listReferrers)
  const rule = parseRule(name, value, direction, modifier)
  return typeof rule === 'string' ? rule : [rule]
}

/** `_include=*` means `Type:*` of the searched type. */
function listReferences(type: string): readonly IncludeRule[] {
  const parameters = findReferences(type)
  if (parameters.length === 0) return []
  return [{ direction: 'forward', iterate: false, source: type, parameters, target: undefined }]
}

/** `_revinclude=*` means every parameter of every type that may refer to the searched type. */
function listReferrers(target: string): readonly IncludeRule[] {
  return [...resourceTypes].flatMap(source => {
    const parameters = listSearchParameters(source)
      .filter(it => it.type === 'reference' && (it.target?.includes(target) ?? true))
      .map(it => it.code)
    return parameters.length === 0
      ? []
      : [{ direction: 'reverse', iterate: false, source, parameters, target, isOfStar: true } as const]
  })
}

function parseRule(
  name: string,
  value: string,
  direction: string | undefined,
  modifier: string | undefined,
): IncludeRule | string {
  const [source = '', parameter = '', target, ...more] = value.split(':')
  if (!isResourceType(source) || parameter === '' || more.length > 0)
    return `Cannot read ${name}: expected Type:parameter, Type:parameter:TargetType or, without :iterate, *`
  if (target !== undefined && !isResourceType(target))
    return `Cannot read ${name}: ${target} is not a resource type`
  const parameters = parameter === '*' ? findReferences(source) : [parameter]
  if (parameter !== '*' && findSearchParameter(source, parameter)?.type !== 'reference')
    return `Cannot include by ${source}:${parameter}: it is not a reference`
  return {
    direction: direction === '_include' ? 'forward' : 'reverse',
    iterate: modifier !== undefined,
    source,
    parameters,
    target,
  }
}

function findReferences(type: string): readonly string[] {
  return listSearchParameters(type)
    .filter(it => it.type === 'reference')
    .map(it => it.code)
}
