BEGIN TRANSACTION;
CREATE TABLE "__drizzle_migrations" (
				id SERIAL PRIMARY KEY,
				hash text NOT NULL,
				created_at numeric
			);
INSERT INTO "__drizzle_migrations" VALUES(NULL,'2ae82411b1b88939b8c68b69b684008cc852fa83432e99a018d7d0a94f2f97ca',1795321606395);
INSERT INTO "__drizzle_migrations" VALUES(NULL,'b4c7b80d263dc3a12d89af3f19bb32329898a79cc0c6222b6dfc6c1f3efbd89b',1795399894767);
INSERT INTO "__drizzle_migrations" VALUES(NULL,'da37e394833dddfb55bde07efce5d9b1c702084d5b9152ba2c0b6c20f797b503',1795435217831);
INSERT INTO "__drizzle_migrations" VALUES(NULL,'035ccd0c790b585a41a1bc7e6eb08b7b78931e92e0b465675faeaeb54dff28c6',1795604096555);
INSERT INTO "__drizzle_migrations" VALUES(NULL,'65c8920ca28139b6e76fc8a1dba2e1d8a6cb41dfa4ceec93f066e0da43b701eb',1795606860648);
INSERT INTO "__drizzle_migrations" VALUES(NULL,'7808e2eca3ae2368a436aa47e2a6bfcbfab102d7efed4202ca2d600f24908fdd',1795616269266);
INSERT INTO "__drizzle_migrations" VALUES(NULL,'8a733aed8e4aa7dc9b7669d03b8b1ddb6534d447d4c4b7ca0b2ce7191f083d54',1795631284197);
INSERT INTO "__drizzle_migrations" VALUES(NULL,'795b3dffac246fb70470cefda7acb88d16e03c996c605ccf11a9cca52d908a02',1795635617537);
CREATE TABLE `api_keys` (
	`id` text PRIMARY KEY NOT NULL,
	`organization_id` text NOT NULL,
	`name` text NOT NULL,
	`digest` blob NOT NULL,
	`trust` text,
	`surfaces` integer NOT NULL,
	`resources` integer NOT NULL,
	`environments` integer NOT NULL,
	`projects` text,
	`expires_at` integer,
	`revoked_at` integer,
	`created_at` integer NOT NULL,
	`grant_seal` blob NOT NULL,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "api_keys_surfaces_rule" CHECK(surfaces between 1 and 7),
	CONSTRAINT "api_keys_resources_rule" CHECK(resources between 0 and 31),
	CONSTRAINT "api_keys_environments_rule" CHECK(environments between 1 and 7)
) STRICT;
INSERT INTO "api_keys" VALUES('01a2149d-d359-7623-8f87-250688d26e5e','01a2149d-d130-73de-b66c-1de74f2e5fa8','ci',X'414CEB40A018EB93377590B6CB3C54F98D7D3A128EF76DA6F292F8D6049F58B0',NULL,1,15,7,NULL,NULL,NULL,1795642217305,X'35155052380A8DB1CC046ADE75CB51EDD4573ECA105B41394656B1FD28984C7D');
CREATE TABLE `audit_checkpoints` (
	`lane` text PRIMARY KEY NOT NULL,
	`seq` integer NOT NULL,
	`mac` blob NOT NULL,
	`seal` blob NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE `audit_checkpoints_signed` (
	`size` integer PRIMARY KEY NOT NULL,
	`root` blob NOT NULL,
	`at` integer NOT NULL,
	`note` text NOT NULL
) STRICT;
INSERT INTO "audit_checkpoints_signed" VALUES(10,X'F2765FEB8A8E3EF8C4AD72247FE1D15538E79C8169D1354B7B6E2B062EB5DEE3',1795642217652,'keyhole/9ac92b182e320f65
10
8nZf64qOPvjErXIkf+HRVTjnnIFp0TVLe24rBi613uM=

— keyhole/9ac92b182e320f65 ENGhgMStnfP70qnoTorR1vlW+/EO337+vvFTT8hJ9my/RpbT1iV9aLG0TgaiNgVpAClHZI1Wd96CAxhPtUhmXYEgsgM=
');
CREATE TABLE `audit_cosignatures` (
	`size` integer NOT NULL,
	`witness` text NOT NULL,
	`at` integer NOT NULL,
	`line` text NOT NULL,
	PRIMARY KEY(`witness`, `size`)
) STRICT, WITHOUT ROWID;
CREATE TABLE `audit_exceptions` (
	`subject` text PRIMARY KEY NOT NULL,
	`recorded` text NOT NULL,
	`found` text NOT NULL,
	`at` integer NOT NULL,
	`seal` blob NOT NULL
) STRICT;
CREATE TABLE `audit_heads` (
	`lane` text PRIMARY KEY NOT NULL,
	`seq` integer NOT NULL,
	`at` integer NOT NULL,
	`mac` blob NOT NULL
, `roster` text, `seal` blob) STRICT;
INSERT INTO "audit_heads" VALUES('commands',9,1795642217465,X'93BD40EC712B86B2BF3DC3FB597CA35D67B7AFCF39E73CF907DCB63926895F81','01a2149d-d3f8-76bb-9c51-e1a67c9260a6',X'E498E42EDFB0D7C356642FB4073AF45792D04DF2A671D2C2A1670C5CEB99504F');
CREATE TABLE `audit_leaves` (
	`leaf` integer PRIMARY KEY NOT NULL,
	`lane` text NOT NULL,
	`last_seq` integer NOT NULL,
	`hashes` blob NOT NULL
) STRICT;
INSERT INTO "audit_leaves" VALUES(0,'01a2149d-d442-7040-a996-779659986c71',1,X'FF499ECF60CC2D21F269CDD7BF026BFC3DDA7C8DD1287BD3ED0242AE439F7340');
INSERT INTO "audit_leaves" VALUES(1,'commands',1,X'15E2713692DD0E0EBBDC46441257BA6D84ACD6D06214F2D6CEF66562088072D8104DC6A8CDB1D2364B187BB888580E9596BEF355582E96EAD84C6AF32ED49294');
INSERT INTO "audit_leaves" VALUES(2,'commands',2,X'A8B24BB5F4C11F073CEFA60AF19B1B119626C04A06BA9E4C55FD7FAF819A2A78');
INSERT INTO "audit_leaves" VALUES(3,'commands',3,X'BF572C020AEF90410A0BEA94545B3D6A2F32B0C225841DE0ACB49E3F694665C7D6155356D60859093C178E64361F6F7D38CA95D315C71199FD1C8013A28319EFA4DD34E9EA3E8531E81DA63FFDC9F065D57C4203260B6B6F0349797186AB1D81');
INSERT INTO "audit_leaves" VALUES(4,'commands',4,X'DDDF107ABE04069D89C3579FA0720F4BBDD21576E4968F92D84ACC122F9BE53F');
INSERT INTO "audit_leaves" VALUES(5,'commands',5,X'3A831C31620127F0770972B597BB4C294032F64654D57532BAFED3022E9912425F15D89CC2CC284000ABE43BC8F27555811524208102FCD6EF7D80836ED6ABBC');
INSERT INTO "audit_leaves" VALUES(6,'commands',6,X'BDFC63A3BCB6C127B729ACA12BABFC79EFD00717DDB4731B976579046A61A33E');
INSERT INTO "audit_leaves" VALUES(7,'commands',7,X'46C4E13C743E5D55C79A904721735759551E21A67B0EFE7ECC11ECEC6E8EA412ABDA0320F962048150CA337D0BB5DAE621687601B1AF2614086AB4DB0EE25EA21A5568C38427EC37DA1E8596945E2942EB3EE583576AA2DD556ACB54BE789AB891D36D7ADC0C8C10A40E7F23B81346F3EDC10EBE54D651EEBCF143B87C202164');
INSERT INTO "audit_leaves" VALUES(8,'commands',8,X'FD84ED0635350B09DC647F5DD6BCD47DEDFC289877BB9877ADB8B8B0C707001D');
INSERT INTO "audit_leaves" VALUES(9,'commands',9,X'8428EAD2B8442091951352FFBCD8EC39B6D5AED0FD38104A11A476656B85E22A7CD1C76DBF312E266B384E615C02774F0AE5CE195D15E5241803636A980E5066');
CREATE TABLE `audit_segments` (
	`lane` text NOT NULL,
	`first_seq` integer NOT NULL,
	`last_seq` integer NOT NULL,
	`at` integer NOT NULL,
	`mac` blob NOT NULL,
	`texts` text NOT NULL,
	`entries` text NOT NULL,
	PRIMARY KEY(`lane`, `first_seq`, `at`)
) STRICT;
INSERT INTO "audit_segments" VALUES('commands',1,1,1795642216758,X'A8B9F46D7C1DE91C92F34284569B50838E763F1B06EE7BE1B7AFC932333F76D0','["person","ann@example.com","01a2149d-d130-73de-b66c-1de74f2e5fa8","acme","","organization.create"]','{"names":[[]],"entries":[[0,1,2,3,4,4,null,5,4,4,0,""]]}');
INSERT INTO "audit_segments" VALUES('commands',2,2,1795642216858,X'56817DFF61F39A19D5A823118ADEDFE323EF4209609B13A8E503C5BA38B75268','["person","ann@example.com","01a2149d-d130-73de-b66c-1de74f2e5fa8","acme","01a2149d-d18a-7524-bd19-9ad20fa328fe","web","project.create",""]','{"names":[[]],"entries":[[0,1,2,3,4,5,null,6,7,7,0,""]]}');
INSERT INTO "audit_segments" VALUES('commands',3,3,1795642216940,X'87174904932086E2AC26F398CC13B6380DC7669C3A4AD6208D0ECBA9B367E6EA','["person","ann@example.com","01a2149d-d130-73de-b66c-1de74f2e5fa8","acme","01a2149d-d18a-7524-bd19-9ad20fa328fe","web","production","variables.write",""]','{"names":[["TOKEN"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",0,1,1,null,2]]}');
INSERT INTO "audit_segments" VALUES('commands',4,4,1795642217045,X'7EDF61C9A6BB3A6D96D2C291CF13BBD4AAD7A872F5A95E434C129F1ADEAB28FB','["person","ann@example.com","01a2149d-d130-73de-b66c-1de74f2e5fa8","acme","01a2149d-d18a-7524-bd19-9ad20fa328fe","web","production","variables.write",""]','{"names":[["TOKEN"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",1,0,1,null,3]]}');
INSERT INTO "audit_segments" VALUES('commands',5,5,1795642217138,X'13064DD7A063874FF7399A52EA4C62EF35513E665A99256636D22FD9AE575D5A','["person","ann@example.com","01a2149d-d130-73de-b66c-1de74f2e5fa8","acme","01a2149d-d18a-7524-bd19-9ad20fa328fe","web","production","accounts.write",""]','{"names":[["mail"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",0,1,1,null,2]]}');
INSERT INTO "audit_segments" VALUES('commands',6,6,1795642217225,X'31CA4C9D5D8D013E85D447F3147754A1F380173539A60ABD1D7CE2BD3F97EB33','["person","ann@example.com","01a2149d-d130-73de-b66c-1de74f2e5fa8","acme","01a2149d-d18a-7524-bd19-9ad20fa328fe","web","production","files.write",""]','{"names":[["config/f"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",0,1,1,null,2]]}');
INSERT INTO "audit_segments" VALUES('commands',7,7,1795642217311,X'3DEA6AD668D2DB0066C962ADF419FCE8B1D43D05B872ACB4EB4B058C05969F4D','["person","ann@example.com","01a2149d-d130-73de-b66c-1de74f2e5fa8","acme","","key.create","01a2149d-d359-7623-8f87-250688d26e5e"]','{"names":[["01a2149d-d359-7623-8f87-250688d26e5e"]],"entries":[[0,1,2,3,4,4,null,5,4,4,0,""]]}');
INSERT INTO "audit_segments" VALUES('commands',8,8,1795642217398,X'B8599345B46DFAE8D65FE5A1A5B3E12765332BD91930F98916680A46B65D7934','["person","ann@example.com","","people.write","01a2149d-d3b5-75ef-88e3-48ba5189d3c8","ana"]','{"names":[["01a2149d-d3b5-75ef-88e3-48ba5189d3c8","ana"],["ana"],[]],"entries":[[0,1,2,2,2,2,null,3,2,2,0,"",1,2,2]]}');
INSERT INTO "audit_segments" VALUES('commands',9,9,1795642217465,X'93BD40EC712B86B2BF3DC3FB597CA35D67B7AFCF39E73CF907DCB63926895F81','["person","ann@example.com","","people.write","01a2149d-d3f8-76bb-9c51-e1a67c9260a6","ana"]','{"names":[["01a2149d-d3f8-76bb-9c51-e1a67c9260a6","ana"],["ana reveal acme/web production"],[]],"entries":[[0,1,2,2,2,2,null,3,2,2,0,"",1,2,2]]}');
INSERT INTO "audit_segments" VALUES('01a2149d-d442-7040-a996-779659986c71',1,1,1795642217620,X'26D4B5606EE70A9CEAA059E1F4A0B7596B6F409321B12C5AD88E14C3EA07D346','["key","01a2149d-d359-7623-8f87-250688d26e5e","01a2149d-d130-73de-b66c-1de74f2e5fa8","acme","01a2149d-d18a-7524-bd19-9ad20fa328fe","web","production","variables.read","127.0.0.1","Bun/1.4.5"]','{"names":[["TOKEN"]],"entries":[[0,1,2,3,4,5,6,7,8,9,0,"8b481e3c-4c7a-401a-be9c-d4cb5426f2f3"]]}');
CREATE TABLE `audit_signers` (
	`generation` integer PRIMARY KEY NOT NULL,
	`public_key` blob NOT NULL,
	`created_at` integer NOT NULL,
	`root_id` text NOT NULL,
	`wrapped` blob NOT NULL
) STRICT;
INSERT INTO "audit_signers" VALUES(1,X'92B17140338ECE351FA2097CB457CFED58B5AC03B9C0F454C593F5D31092C50E',1795642217588,'d3c8c36ad73dca78',X'010100000002D2D84E67297F48AD576388E97B4BD03442C8911B0CB7EABD1A10063748FB2C725E26DAC0A50034BC73992F58574010026BC58775FD170E57895824F5');
CREATE TABLE `data_keys` (
	`project_id` text NOT NULL,
	`generation` integer NOT NULL,
	`root_id` text NOT NULL,
	`wrapped` blob NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`project_id`, `generation`),
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE cascade,
	CONSTRAINT "data_keys_generation_rule" CHECK(generation >= 1)
) STRICT;
INSERT INTO "data_keys" VALUES('01a2149d-d18a-7524-bd19-9ad20fa328fe',1,'d3c8c36ad73dca78',X'01010000000005E30D0D4967F96CBE8A12BB97722072C61CD88543657E6387E02F519C5278659D874628E935AEBB024B28AF394EC2ED08D99A5E458AF2E594F8B5B0',1795642216842);
CREATE TABLE `file_contents` (
	`id` text PRIMARY KEY NOT NULL,
	`project_id` text NOT NULL,
	`size` integer NOT NULL,
	`generation` integer NOT NULL,
	`sealed` blob NOT NULL,
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`project_id`,`generation`) REFERENCES `data_keys`(`project_id`,`generation`) ON UPDATE no action ON DELETE no action
) STRICT;
INSERT INTO "file_contents" VALUES('01a2149d-d303-772b-a2dc-f597f17ac043','01a2149d-d18a-7524-bd19-9ad20fa328fe',8,1,X'0101000000017D2C9E90582346FCE5360DDE4570F5EAA5C9A323D4B9C2D98F1B8900FC08C8412A94334A');
CREATE TABLE `key_uses` (
	`key_id` text PRIMARY KEY NOT NULL,
	`last_used_at` integer NOT NULL,
	FOREIGN KEY (`key_id`) REFERENCES `api_keys`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
INSERT INTO "key_uses" VALUES('01a2149d-d359-7623-8f87-250688d26e5e',1795642217615);
CREATE TABLE `organizations` (
	`id` text PRIMARY KEY NOT NULL,
	`slug` text NOT NULL,
	`name` text NOT NULL,
	`plan` text NOT NULL,
	`created_at` integer NOT NULL, `seal` blob,
	CONSTRAINT "organizations_slug_rule" CHECK(length(slug) between 1 and 64 and slug not glob '*[^a-z0-9-]*' and slug not glob '-*'),
	CONSTRAINT "organizations_plan_rule" CHECK(plan in ('free', 'pro'))
) STRICT;
INSERT INTO "organizations" VALUES('01a2149d-d130-73de-b66c-1de74f2e5fa8','acme','acme','pro',1795642216752,X'23BBABC472CE9CB2F9CB258BD97839ADC8C9F538ADF45DBC6E21132381E9FBA2');
CREATE TABLE `projects` (
	`id` text PRIMARY KEY NOT NULL,
	`organization_id` text NOT NULL,
	`slug` text NOT NULL,
	`name` text NOT NULL,
	`variable_counts` text NOT NULL,
	`account_counts` text NOT NULL,
	`file_counts` text NOT NULL,
	`changed_at` text NOT NULL,
	`created_at` integer NOT NULL, `environments` integer DEFAULT 7 NOT NULL,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "projects_slug_rule" CHECK(length(slug) between 1 and 64 and slug not glob '*[^a-z0-9-]*' and slug not glob '-*')
) STRICT;
INSERT INTO "projects" VALUES('01a2149d-d18a-7524-bd19-9ad20fa328fe','01a2149d-d130-73de-b66c-1de74f2e5fa8','web','web','[0,0,0,1,0,0,0]','[0,0,0,1,0,0,0]','[0,0,0,1,0,0,0]','[1795642216842,1795642216842,1795642217218]',1795642216842,7);
CREATE TABLE `rosters` (
	`id` text PRIMARY KEY NOT NULL,
	`version` integer NOT NULL,
	`listing` text NOT NULL,
	`mac` blob NOT NULL
) STRICT;
INSERT INTO "rosters" VALUES('01a2149d-d3b5-75ef-88e3-48ba5189d3c8',1,'[{"name":"ana","organizationId":"01a2149d-d130-73de-b66c-1de74f2e5fa8","signIn":null,"holdings":[]}]',X'5A99C1E62421C12801CE525EB1C9E409996847486DFE86FF692C736346888E1B');
INSERT INTO "rosters" VALUES('01a2149d-d3f8-76bb-9c51-e1a67c9260a6',2,'[{"name":"ana","organizationId":"01a2149d-d130-73de-b66c-1de74f2e5fa8","signIn":null,"holdings":[{"organizationId":"01a2149d-d130-73de-b66c-1de74f2e5fa8","projectId":"01a2149d-d18a-7524-bd19-9ad20fa328fe","environments":4,"rights":["reveal"]}]}]',X'EC5E5EAFCA32772CF65748639A64134CC5B4665854F2D9CA9CE1BDB35C6F8BAA');
CREATE TABLE `set_versions` (
	`project_id` text NOT NULL,
	`kind` text NOT NULL,
	`environment` text NOT NULL,
	`version` integer NOT NULL,
	`at` integer NOT NULL,
	`actor` text NOT NULL,
	`names` text NOT NULL,
	`mac` blob NOT NULL,
	`generation` integer,
	`listing_mac` blob,
	`listing` text,
	`sealed` blob,
	PRIMARY KEY(`project_id`, `kind`, `environment`, `version`),
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT;
INSERT INTO "set_versions" VALUES('01a2149d-d18a-7524-bd19-9ad20fa328fe','variables','development',1,1795642216842,'ann@example.com','{"added":[],"changed":[],"deleted":[]}',X'A1C12FD579FB5AAEC343D186AA059D592C7757B9DAD3AA6DC1810E9F54E076E9',NULL,X'C58C86C63A0131745E31D12EF47676F09546B8743AE484A0A863D512E9DD8FF0',NULL,NULL);
INSERT INTO "set_versions" VALUES('01a2149d-d18a-7524-bd19-9ad20fa328fe','variables','staging',1,1795642216842,'ann@example.com','{"added":[],"changed":[],"deleted":[]}',X'7EB1B1EC9058AC86263325852559B95EBFBDA456C59451A0BF71B74E239B8058',NULL,X'FBA49FDB44B97E1DD22DC8FD559685FAB43A397EC23337BB2C0E96091B30C0FA',NULL,NULL);
INSERT INTO "set_versions" VALUES('01a2149d-d18a-7524-bd19-9ad20fa328fe','variables','production',1,1795642216842,'ann@example.com','{"added":[],"changed":[],"deleted":[]}',X'4BE7126330020B5BF017222B677F1E5F854018CA6AA08BA59161387CE67C1461',1,X'C1A22259EE3D72D9A42B159E13F263524C4A34C72A40C79EAE7B2C054989E085','[]',X'0101000000013A76ACCD9E70B23B07CA8360C4FBF92E605111059C08014DD9BE04868487FF8B');
INSERT INTO "set_versions" VALUES('01a2149d-d18a-7524-bd19-9ad20fa328fe','accounts','development',1,1795642216842,'ann@example.com','{"added":[],"changed":[],"deleted":[]}',X'D95DA4B5C788EA8B3C9F9E3D3690FA1A914B7C376654D0AAEB0BB8CFFB28B93A',NULL,X'BA621DC6EF13EEEF2CAF9D7ADCAD9C76FB0AEC3C0E4401AF76AABE56802176EB',NULL,NULL);
INSERT INTO "set_versions" VALUES('01a2149d-d18a-7524-bd19-9ad20fa328fe','accounts','staging',1,1795642216842,'ann@example.com','{"added":[],"changed":[],"deleted":[]}',X'2023F8122A539699C0688E0250AB9D6EA8DEC7667C5379BE61414A893F04A210',NULL,X'86C3277651416775702E4E0198555C6F44CAB690127EBA46D05D0A671142D711',NULL,NULL);
INSERT INTO "set_versions" VALUES('01a2149d-d18a-7524-bd19-9ad20fa328fe','accounts','production',1,1795642216842,'ann@example.com','{"added":[],"changed":[],"deleted":[]}',X'AAF30B432F49B0F0FD5AEB0E4E7F3963E96D8BD1A92206818F64B664142E3B8B',1,X'0DD2C8086E939AC750E977E42B109A7AA94E2910A05D44F9F758DE7276D5A325','[]',X'0101000000018E2E1F781E38AC543037DA58DBE1E89A590A29242AD7CAE1BC7459FBFBA7A43B');
INSERT INTO "set_versions" VALUES('01a2149d-d18a-7524-bd19-9ad20fa328fe','files','development',1,1795642216842,'ann@example.com','{"added":[],"changed":[],"deleted":[]}',X'204500AD24DED07316777476772E164EA070813F227EABEC671FE2B8037A6EB5',NULL,X'F041F7A3011FE555EDFAD6AC527811558BED4AB44F6F1B50DA41F41B0567BAEF',NULL,NULL);
INSERT INTO "set_versions" VALUES('01a2149d-d18a-7524-bd19-9ad20fa328fe','files','staging',1,1795642216842,'ann@example.com','{"added":[],"changed":[],"deleted":[]}',X'5AF28C57AD227BE45F0DFFF219612708A3683E604DD35167264AFF1E7A801C8C',NULL,X'53097A729865CF3691F271C39417BD58D5A208E2F17BDF9B741B422DC6ECDAD1',NULL,NULL);
INSERT INTO "set_versions" VALUES('01a2149d-d18a-7524-bd19-9ad20fa328fe','files','production',1,1795642216842,'ann@example.com','{"added":[],"changed":[],"deleted":[]}',X'0E141BF0F171DF1A7BB87CD483DA99CC11BBD3B622CC14EF41BE14AC60904519',0,X'B2477EA09EE7D673F08825E6A9572D53285EE453778C8D6C7CFDE5764E43DA1B','[]',NULL);
INSERT INTO "set_versions" VALUES('01a2149d-d18a-7524-bd19-9ad20fa328fe','variables','production',2,1795642216931,'ann@example.com','{"added":["TOKEN"],"changed":[],"deleted":[]}',X'154BD82102FD8F89523D039EAE2794423A3FE29C2D59CDF11466DDDD2B7AC6F7',1,X'AB5ADFF15A92F2077238BB9D60518309CF6E481211BABDCD01F4A713C29A27F6','[{"key":"TOKEN","updatedAt":1795642216931,"version":2}]',X'010100000001C87590EC1DD0E0365AD3CFEAFE62C3DCF1F227362035BADDC1841FCC62B3D5B4DB9BDDB32361DA648A697EF2628240444D35499FF6BD8D54E34CCE7555F6AB301F854A35CA19C92A4785B65FAABF6E0BD47F70932D930CAC4DCD13E55B');
INSERT INTO "set_versions" VALUES('01a2149d-d18a-7524-bd19-9ad20fa328fe','variables','production',3,1795642217033,'ann@example.com','{"added":[],"changed":["TOKEN"],"deleted":[]}',X'81D9A29240F05E6063ACB60F8000E5ED487A4C644F956775BBD606E15CFB0F5C',NULL,X'55D424F2DC85EFD1B2A61ADCBDA03A4E137DFCD7DBAC51A508B3CE572509EEBE',NULL,NULL);
INSERT INTO "set_versions" VALUES('01a2149d-d18a-7524-bd19-9ad20fa328fe','accounts','production',2,1795642217127,'ann@example.com','{"added":["mail"],"changed":[],"deleted":[]}',X'79195FA02403D3529D43692C618BB6603C2FC99F81E611AEC16BF5EC65813487',NULL,X'8E84A9DB70A522F917F8FA994C894F763D9A5796E8446D14F3AB7DB777B99DCB',NULL,NULL);
INSERT INTO "set_versions" VALUES('01a2149d-d18a-7524-bd19-9ad20fa328fe','files','production',2,1795642217218,'ann@example.com','{"added":["config/f"],"changed":[],"deleted":[]}',X'CED5C61646852145C32A6B1F16FC677168C8C2521FAD700E5562294C53267159',NULL,X'3EE143E884B9E0B53FAADD664E15B7F20F93916ADC1B75FD8DA927B091579ADE',NULL,NULL);
CREATE TABLE `sets` (
	`project_id` text NOT NULL,
	`kind` text NOT NULL,
	`environment` text NOT NULL,
	`version` integer NOT NULL,
	`generation` integer NOT NULL,
	`listing_mac` blob NOT NULL,
	`listing` text NOT NULL,
	`sealed` blob,
	PRIMARY KEY(`project_id`, `kind`, `environment`),
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE cascade,
	CONSTRAINT "sets_kind_rule" CHECK(kind in ('variables', 'accounts', 'files')),
	CONSTRAINT "sets_environment_rule" CHECK(environment in ('development', 'staging', 'production'))
) STRICT;
INSERT INTO "sets" VALUES('01a2149d-d18a-7524-bd19-9ad20fa328fe','variables','development',1,1,X'C58C86C63A0131745E31D12EF47676F09546B8743AE484A0A863D512E9DD8FF0','[]',X'010100000001938673B8000FE071CD24647F402E5E1D8E85DF947D08749139841E9BB0E78B19');
INSERT INTO "sets" VALUES('01a2149d-d18a-7524-bd19-9ad20fa328fe','variables','staging',1,1,X'FBA49FDB44B97E1DD22DC8FD559685FAB43A397EC23337BB2C0E96091B30C0FA','[]',X'0101000000010257E600666959FB8C5DBD8CC0FA6CA3B4EAAB96C75F6228B08D85FDB65D0034');
INSERT INTO "sets" VALUES('01a2149d-d18a-7524-bd19-9ad20fa328fe','variables','production',3,1,X'55D424F2DC85EFD1B2A61ADCBDA03A4E137DFCD7DBAC51A508B3CE572509EEBE','[{"key":"TOKEN","updatedAt":1795642217033,"version":3}]',X'0101000000019DA4A378931BCEAD2D8AB6B6F24B88D1FA75F873DB56641CE9D9A87E01019C142CC125EF609E26A0C0BFAAE31C52FE37B73255B26CB465F4A4CF703FA0417570CDF932D8255E00A04F0DF4904587779E309898EAF444B1E00091CA8779B6');
INSERT INTO "sets" VALUES('01a2149d-d18a-7524-bd19-9ad20fa328fe','accounts','development',1,1,X'BA621DC6EF13EEEF2CAF9D7ADCAD9C76FB0AEC3C0E4401AF76AABE56802176EB','[]',X'010100000001A8699ADB392CE9541595D2621021F7BFD7F7D4E210AFD2648B7289E8F87859CB');
INSERT INTO "sets" VALUES('01a2149d-d18a-7524-bd19-9ad20fa328fe','accounts','staging',1,1,X'86C3277651416775702E4E0198555C6F44CAB690127EBA46D05D0A671142D711','[]',X'0101000000011F3C9BC8B1BF4BA263ACC84CBF6AB910D17A61AD8866E336A4154CB19EB3FEF0');
INSERT INTO "sets" VALUES('01a2149d-d18a-7524-bd19-9ad20fa328fe','accounts','production',2,1,X'8E84A9DB70A522F917F8FA994C894F763D9A5796E8446D14F3AB7DB777B99DCB','[{"name":"mail","updatedAt":1795642217127,"version":2}]',X'010100000001AB51D89FFCA6BF498031992174FE7326DE52A7C38BD00375951A249EFB50A371832C5A5E0423CDC78BC087B74F34B2EB93C930F1D22021F5E92D48C8BF5928');
INSERT INTO "sets" VALUES('01a2149d-d18a-7524-bd19-9ad20fa328fe','files','development',1,0,X'F041F7A3011FE555EDFAD6AC527811558BED4AB44F6F1B50DA41F41B0567BAEF','[]',NULL);
INSERT INTO "sets" VALUES('01a2149d-d18a-7524-bd19-9ad20fa328fe','files','staging',1,0,X'53097A729865CF3691F271C39417BD58D5A208E2F17BDF9B741B422DC6ECDAD1','[]',NULL);
INSERT INTO "sets" VALUES('01a2149d-d18a-7524-bd19-9ad20fa328fe','files','production',2,0,X'3EE143E884B9E0B53FAADD664E15B7F20F93916ADC1B75FD8DA927B091579ADE','[{"id":"01a2149d-d303-772b-a2dc-f597f17ac043","path":"config/f","name":"f","mode":"0600","size":8,"sha256":"b0e76ff73bda4879cbe86fd7040b54dda54b7dfd96a4f2c0724c07814da7fefd","contentType":"application/octet-stream","updatedAt":1795642217218}]',NULL);
CREATE TABLE `system_keys` (
	`purpose` text PRIMARY KEY NOT NULL,
	`root_id` text NOT NULL,
	`wrapped` blob NOT NULL,
	`created_at` integer NOT NULL,
	CONSTRAINT "system_keys_rule" CHECK(purpose in ('pepper', 'grant', 'audit', 'listing'))
) STRICT, WITHOUT ROWID;
INSERT INTO "system_keys" VALUES('audit','d3c8c36ad73dca78',X'01010000000271868F5353C511B4B856369D3D0C66CE83E87AB0613825D226BD557C21D2888136D05E4E1A33E2FC184CBCF5A6715CA91ACFF1310ED8FB75A0DD181D',1795642216742);
INSERT INTO "system_keys" VALUES('grant','d3c8c36ad73dca78',X'010100000002137A1E416091387D29DFCA3B00CBDF3EB3E4A3A7F4D9D7B91142EFE14C034FC04D7CC596AFAA49897DDC8EB38D02AD7E853E6EA48128CE5726F54907',1795642216742);
INSERT INTO "system_keys" VALUES('listing','d3c8c36ad73dca78',X'01010000000201BC8D99052EC47A0F761539E007CEBACC78916E4361441ABA781ABBFAC97B64E93C26D2841FED59AD15D9E638BE945DA618881BF62CC5AEFE5CA7CB',1795642216742);
INSERT INTO "system_keys" VALUES('pepper','d3c8c36ad73dca78',X'010100000002850DA685B6BA72BF1D8EDD27B0A5CF960CDD9AC42447DE17C59AEE6037FF63016C22CCD536499EAA53D3A7A5BD4E83CAF2A4B3276EFFE7A9A422A86E',1795642216742);
CREATE TABLE `variable_requests` (
	`id` text PRIMARY KEY NOT NULL,
	`organization_id` text NOT NULL,
	`project_id` text NOT NULL,
	`environment` text NOT NULL,
	`name` text NOT NULL,
	`reason` text NOT NULL,
	`key_id` text NOT NULL,
	`number` integer NOT NULL,
	`status` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`decided_at` integer,
	`decided_by` text,
	`decision_reason` text,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE cascade,
	CONSTRAINT "variable_requests_status_rule" CHECK(status in ('pending', 'approved', 'rejected'))
) STRICT;
CREATE UNIQUE INDEX `api_keys_digest` ON `api_keys` (`digest`);
CREATE INDEX `api_keys_organization` ON `api_keys` (`organization_id`);
CREATE INDEX `api_keys_expiry` ON `api_keys` (`expires_at`) WHERE revoked_at is null;
CREATE INDEX `api_keys_trusts` ON `api_keys` (`id`) WHERE trust is not null;
CREATE INDEX `audit_segments_at` ON `audit_segments` (`at`);
CREATE INDEX `file_contents_project` ON `file_contents` (`project_id`);
CREATE UNIQUE INDEX `organizations_slug` ON `organizations` (`slug`);
CREATE UNIQUE INDEX `projects_slug` ON `projects` (`organization_id`,`slug`);
CREATE INDEX `sets_marked` ON `sets` (`project_id`) WHERE instr(listing, '"rotateBy":"') > 0;
CREATE UNIQUE INDEX `variable_requests_number` ON `variable_requests` (`organization_id`,`number`);
CREATE INDEX `variable_requests_expiry` ON `variable_requests` (`organization_id`,`expires_at`);
CREATE INDEX `variable_requests_project` ON `variable_requests` (`project_id`);
CREATE UNIQUE INDEX `rosters_version` ON `rosters` (`version`);
CREATE VIEW `audit_entries` AS
SELECT lane, first_seq + entry.key AS seq, at,
	json_extract(texts, '$[' || (entry.value ->> 0) || ']') AS actor_type,
	json_extract(texts, '$[' || (entry.value ->> 1) || ']') AS actor,
	CASE json_extract(texts, '$[' || (entry.value ->> 0) || ']') WHEN 'key' THEN json_extract(texts, '$[' || (entry.value ->> 1) || ']') END AS key_id,
	json_extract(texts, '$[' || (entry.value ->> 2) || ']') AS organization_id,
	json_extract(texts, '$[' || (entry.value ->> 3) || ']') AS organization,
	json_extract(texts, '$[' || (entry.value ->> 4) || ']') AS project_id,
	json_extract(texts, '$[' || (entry.value ->> 5) || ']') AS project,
	json_extract(texts, '$[' || (entry.value ->> 6) || ']') AS environment,
	json_extract(texts, '$[' || (entry.value ->> 7) || ']') AS action,
	json_extract(entries, '$.names[' || (entry.value ->> 10) || ']') AS names,
	json_array_length(entries, '$.names[' || (entry.value ->> 10) || ']') AS count,
	json_extract(entries, '$.names[' || (entry.value ->> 12) || ']') AS added,
	json_extract(entries, '$.names[' || (entry.value ->> 13) || ']') AS changed,
	json_extract(entries, '$.names[' || (entry.value ->> 14) || ']') AS deleted,
	entry.value ->> 11 AS request_id,
	json_extract(texts, '$[' || (entry.value ->> 8) || ']') AS client_address,
	json_extract(texts, '$[' || (entry.value ->> 9) || ']') AS user_agent,
	CASE json_extract(texts, '$[' || (entry.value ->> 0) || ']') WHEN 'trust' THEN json_extract(texts, '$[' || (entry.value ->> 1) || ']') END AS trust_id,
	CASE json_extract(texts, '$[' || (entry.value ->> 0) || ']') WHEN 'trust' THEN json_extract(texts, '$[' || (entry.value ->> 15) || ']') END AS token,
	CASE json_extract(texts, '$[' || (entry.value ->> 0) || ']') WHEN 'person' THEN coalesce(json_extract(texts, '$[' || (entry.value ->> 15) || ']'), '"os"') END AS actor_from
FROM audit_segments, json_each(entries, '$.entries') AS entry;
CREATE UNIQUE INDEX `audit_leaves_segment` ON `audit_leaves` (`lane`,`last_seq`);
COMMIT;
