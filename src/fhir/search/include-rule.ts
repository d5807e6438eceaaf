import { isResourceType, searchParameter, searchParametersOf } from '../definitions.ts'

/** `_include=MedicationRequest:requester:Practitioner` and the like. */
export interface IncludeRule {
  /** Along a reference of what was found, or against one that points to it (`_revinclude`). */
  readonly direction: 'forward' | 'reverse'
  /** Also from what was itself included (`:iterate`). */
  readonly iterate: boolean
  /** The type that has the references. */
  readonly source: string
  readonly parameters: readonly string[]
  /** The one type they may point to, where it is named. */
  readonly target: string | undefined
}

/** The rule, or why there is none. */
export function parseInclude(name: string, value: string): IncludeRule | string {
  const [direction, modifier] = name.split(':')
  const [source = '', parameter = '', target, ...more] = value.split(':')
  if (!isResourceType(source) || parameter === '' || more.length > 0)
    return `Cannot read ${name}: expected Type:parameter or Type:parameter:TargetType`
  if (target !== undefined && !isResourceType(target))
    return `Cannot read ${name}: ${target} is no resource type`
  const parameters = parameter === '*' ? referencesOf(source) : [parameter]
  if (parameter !== '*' && searchParameter(source, parameter)?.type !== 'reference')
    return `Cannot include by ${source}:${parameter}: it is no reference`
  return {
    direction: direction === '_include' ? 'forward' : 'reverse',
    iterate: modifier !== undefined,
    source,
    parameters,
    target,
  }
}

function referencesOf(type: string): readonly string[] {
  return searchParametersOf(type)
    .filter(it => it.type === 'reference')
    .map(it => it.code)
}
