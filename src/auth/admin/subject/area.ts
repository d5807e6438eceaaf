import type { AdminOperation } from '../base/action.ts'
import { defineListCommand, defineShowCommand, type ListCommand, type ShowCommand } from './command.ts'
import { defineDetailsRoutes, defineOneEndpoint } from './details.ts'
import type { AdminEndpoint } from './endpoint.ts'
import { defineListEndpoint } from './list-endpoint.ts'
import { defineListRoutes } from './list-page.ts'
import {
  defineOperationEndpoints,
  defineOperationRoutes,
  listOperationCommands,
  listOperations,
  type OperationCommand,
} from './operations.ts'
import type { AdminRoute } from './page/route.ts'
import type { Subject } from './subject.ts'

/** What the administration has of a subject. */
export interface Area {
  readonly routes?: readonly AdminRoute[]
  readonly endpoints?: readonly AdminEndpoint[]
  readonly lists?: readonly ListCommand[]
  readonly shows?: readonly ShowCommand[]
  readonly commands?: readonly OperationCommand[]
  /** By which it may be named in the audit trail. */
  readonly operations?: readonly AdminOperation[]
}

/** Everything that follows from a subject, and its own pages and endpoints. */
export function defineArea<Row, Target, Changed, Listed>(
  subject: Subject<Row, Target, Changed, Listed>,
  { routes = [], endpoints = [], operations = [] }: Pick<Area, 'routes' | 'endpoints' | 'operations'> = {},
): Area {
  const { lists = [] } = subject
  return {
    routes: [
      ...lists.flatMap(list => defineListRoutes(list)),
      ...defineDetailsRoutes(subject),
      ...routes,
      ...defineOperationRoutes(subject),
    ],
    endpoints: [
      ...lists.flatMap(list => defineListEndpoint(list)),
      ...defineOneEndpoint(subject),
      ...endpoints,
      ...defineOperationEndpoints(subject),
    ],
    lists: lists.flatMap(list => defineListCommand(list)),
    shows: defineShowCommand(subject),
    commands: listOperationCommands(subject),
    operations: [
      ...listOperations(subject),
      ...lists.flatMap(({ csv }) => csv?.operation ?? []),
      ...operations,
    ],
  }
}
