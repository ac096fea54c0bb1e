--
-- PostgreSQL database dump
--


-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: drizzle; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA drizzle;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: __drizzle_migrations; Type: TABLE; Schema: drizzle; Owner: -
--

CREATE TABLE drizzle.__drizzle_migrations (
    id integer NOT NULL,
    hash text NOT NULL,
    created_at bigint
);


--
-- Name: __drizzle_migrations_id_seq; Type: SEQUENCE; Schema: drizzle; Owner: -
--

CREATE SEQUENCE drizzle.__drizzle_migrations_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: __drizzle_migrations_id_seq; Type: SEQUENCE OWNED BY; Schema: drizzle; Owner: -
--

ALTER SEQUENCE drizzle.__drizzle_migrations_id_seq OWNED BY drizzle.__drizzle_migrations.id;


--
-- Name: api_keys; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.api_keys (
    id text NOT NULL COLLATE pg_catalog."C",
    organization_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    digest bytea NOT NULL,
    trust text COLLATE pg_catalog."C",
    surfaces integer NOT NULL,
    resources integer NOT NULL,
    environments integer NOT NULL,
    projects text COLLATE pg_catalog."C",
    expires_at bigint,
    revoked_at bigint,
    created_at bigint NOT NULL,
    grant_seal bytea NOT NULL,
    CONSTRAINT api_keys_environments_rule CHECK (((environments >= 1) AND (environments <= 7))),
    CONSTRAINT api_keys_resources_rule CHECK (((resources >= 0) AND (resources <= 31))),
    CONSTRAINT api_keys_surfaces_rule CHECK (((surfaces >= 1) AND (surfaces <= 7)))
);


--
-- Name: audit_checkpoints; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_checkpoints (
    lane text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL,
    mac bytea NOT NULL,
    seal bytea NOT NULL
);


--
-- Name: audit_segments; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_segments (
    lane text NOT NULL COLLATE pg_catalog."C",
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    at bigint NOT NULL,
    mac bytea NOT NULL,
    texts text NOT NULL COLLATE pg_catalog."C",
    entries text NOT NULL COLLATE pg_catalog."C"
)
PARTITION BY RANGE (at);


--
-- Name: audit_entries; Type: VIEW; Schema: public; Owner: -
--

CREATE VIEW public.audit_entries AS
 SELECT audit_segments.lane,
    ((audit_segments.first_seq + numbered.n) - 1) AS seq,
    audit_segments.at,
    (parsed.texts ->> ((numbered.entry ->> 0))::integer) AS actor_type,
    (parsed.texts ->> ((numbered.entry ->> 1))::integer) AS actor,
        CASE (parsed.texts ->> ((numbered.entry ->> 0))::integer)
            WHEN 'key'::text THEN (parsed.texts ->> ((numbered.entry ->> 1))::integer)
            ELSE NULL::text
        END AS key_id,
    (parsed.texts ->> ((numbered.entry ->> 2))::integer) AS organization_id,
    (parsed.texts ->> ((numbered.entry ->> 3))::integer) AS organization,
    (parsed.texts ->> ((numbered.entry ->> 4))::integer) AS project_id,
    (parsed.texts ->> ((numbered.entry ->> 5))::integer) AS project,
    (parsed.texts ->> ((numbered.entry ->> 6))::integer) AS environment,
    (parsed.texts ->> ((numbered.entry ->> 7))::integer) AS action,
    ((segment.names -> ((numbered.entry ->> 10))::integer))::text AS names,
    json_array_length((segment.names -> ((numbered.entry ->> 10))::integer)) AS count,
    ((segment.names -> ((numbered.entry ->> 12))::integer))::text AS added,
    ((segment.names -> ((numbered.entry ->> 13))::integer))::text AS changed,
    ((segment.names -> ((numbered.entry ->> 14))::integer))::text AS deleted,
    (numbered.entry ->> 11) AS request_id,
    (parsed.texts ->> ((numbered.entry ->> 8))::integer) AS client_address,
    (parsed.texts ->> ((numbered.entry ->> 9))::integer) AS user_agent,
        CASE (parsed.texts ->> ((numbered.entry ->> 0))::integer)
            WHEN 'trust'::text THEN (parsed.texts ->> ((numbered.entry ->> 1))::integer)
            ELSE NULL::text
        END AS trust_id,
    (parsed.texts ->> ((numbered.entry ->> 15))::integer) AS token
   FROM public.audit_segments,
    LATERAL ( SELECT (audit_segments.texts)::jsonb AS texts
         OFFSET 0) parsed,
    LATERAL json_to_record((audit_segments.entries)::json) segment(names json, entries jsonb),
    LATERAL jsonb_array_elements(segment.entries) WITH ORDINALITY numbered(entry, n);


--
-- Name: audit_heads; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_heads (
    lane text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL,
    at bigint NOT NULL,
    mac bytea NOT NULL
);


--
-- Name: audit_segments_2026_11; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_segments_2026_11 (
    lane text NOT NULL COLLATE pg_catalog."C",
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    at bigint NOT NULL,
    mac bytea NOT NULL,
    texts text NOT NULL COLLATE pg_catalog."C",
    entries text NOT NULL COLLATE pg_catalog."C"
);


--
-- Name: audit_segments_2026_12; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_segments_2026_12 (
    lane text NOT NULL COLLATE pg_catalog."C",
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    at bigint NOT NULL,
    mac bytea NOT NULL,
    texts text NOT NULL COLLATE pg_catalog."C",
    entries text NOT NULL COLLATE pg_catalog."C"
);


--
-- Name: audit_segments_2027_01; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_segments_2027_01 (
    lane text NOT NULL COLLATE pg_catalog."C",
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    at bigint NOT NULL,
    mac bytea NOT NULL,
    texts text NOT NULL COLLATE pg_catalog."C",
    entries text NOT NULL COLLATE pg_catalog."C"
);


--
-- Name: audit_segments_2027_02; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_segments_2027_02 (
    lane text NOT NULL COLLATE pg_catalog."C",
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    at bigint NOT NULL,
    mac bytea NOT NULL,
    texts text NOT NULL COLLATE pg_catalog."C",
    entries text NOT NULL COLLATE pg_catalog."C"
);


--
-- Name: audit_segments_2027_03; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_segments_2027_03 (
    lane text NOT NULL COLLATE pg_catalog."C",
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    at bigint NOT NULL,
    mac bytea NOT NULL,
    texts text NOT NULL COLLATE pg_catalog."C",
    entries text NOT NULL COLLATE pg_catalog."C"
);


--
-- Name: audit_segments_2027_04; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_segments_2027_04 (
    lane text NOT NULL COLLATE pg_catalog."C",
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    at bigint NOT NULL,
    mac bytea NOT NULL,
    texts text NOT NULL COLLATE pg_catalog."C",
    entries text NOT NULL COLLATE pg_catalog."C"
);


--
-- Name: audit_segments_2027_05; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_segments_2027_05 (
    lane text NOT NULL COLLATE pg_catalog."C",
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    at bigint NOT NULL,
    mac bytea NOT NULL,
    texts text NOT NULL COLLATE pg_catalog."C",
    entries text NOT NULL COLLATE pg_catalog."C"
);


--
-- Name: audit_segments_default; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_segments_default (
    lane text NOT NULL COLLATE pg_catalog."C",
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    at bigint NOT NULL,
    mac bytea NOT NULL,
    texts text NOT NULL COLLATE pg_catalog."C",
    entries text NOT NULL COLLATE pg_catalog."C"
);


--
-- Name: data_keys; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.data_keys (
    project_id text NOT NULL COLLATE pg_catalog."C",
    generation integer NOT NULL,
    root_id text NOT NULL COLLATE pg_catalog."C",
    wrapped bytea NOT NULL,
    created_at bigint NOT NULL,
    CONSTRAINT data_keys_generation_rule CHECK ((generation >= 1))
);


--
-- Name: file_contents; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.file_contents (
    id text NOT NULL COLLATE pg_catalog."C",
    project_id text NOT NULL COLLATE pg_catalog."C",
    size integer NOT NULL,
    generation integer NOT NULL,
    sealed bytea NOT NULL
);
ALTER TABLE ONLY public.file_contents ALTER COLUMN sealed SET STORAGE EXTERNAL;


--
-- Name: key_uses; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.key_uses (
    key_id text NOT NULL COLLATE pg_catalog."C",
    last_used_at bigint NOT NULL
);


--
-- Name: organizations; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.organizations (
    id text NOT NULL COLLATE pg_catalog."C",
    slug text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    plan text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    CONSTRAINT organizations_plan_rule CHECK ((plan = ANY (ARRAY['free'::text, 'pro'::text]))),
    CONSTRAINT organizations_slug_rule CHECK ((slug ~ '^[a-z0-9][a-z0-9-]{0,63}$'::text))
);


--
-- Name: projects; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.projects (
    id text NOT NULL COLLATE pg_catalog."C",
    organization_id text NOT NULL COLLATE pg_catalog."C",
    slug text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    variable_counts text NOT NULL COLLATE pg_catalog."C",
    account_counts text NOT NULL COLLATE pg_catalog."C",
    file_counts text NOT NULL COLLATE pg_catalog."C",
    changed_at text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    CONSTRAINT projects_slug_rule CHECK ((slug ~ '^[a-z0-9][a-z0-9-]{0,63}$'::text))
);


--
-- Name: set_versions; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.set_versions (
    project_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    environment text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    at bigint NOT NULL,
    actor text NOT NULL COLLATE pg_catalog."C",
    names text NOT NULL COLLATE pg_catalog."C",
    mac bytea NOT NULL,
    generation integer,
    listing_mac bytea,
    listing text COLLATE pg_catalog."C",
    sealed bytea
);
ALTER TABLE ONLY public.set_versions ALTER COLUMN sealed SET STORAGE EXTERNAL;


--
-- Name: sets; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.sets (
    project_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    environment text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    generation integer NOT NULL,
    listing_mac bytea NOT NULL,
    listing text NOT NULL COLLATE pg_catalog."C",
    sealed bytea,
    CONSTRAINT sets_environment_rule CHECK ((environment = ANY (ARRAY['development'::text, 'staging'::text, 'production'::text]))),
    CONSTRAINT sets_kind_rule CHECK ((kind = ANY (ARRAY['variables'::text, 'accounts'::text, 'files'::text])))
);
ALTER TABLE ONLY public.sets ALTER COLUMN listing SET STORAGE EXTERNAL;
ALTER TABLE ONLY public.sets ALTER COLUMN sealed SET STORAGE EXTERNAL;


--
-- Name: system_keys; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.system_keys (
    purpose text NOT NULL COLLATE pg_catalog."C",
    root_id text NOT NULL COLLATE pg_catalog."C",
    wrapped bytea NOT NULL,
    created_at bigint NOT NULL,
    CONSTRAINT system_keys_rule CHECK ((purpose = ANY (ARRAY['pepper'::text, 'grant'::text, 'audit'::text, 'listing'::text])))
);


--
-- Name: variable_requests; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.variable_requests (
    id text NOT NULL COLLATE pg_catalog."C",
    organization_id text NOT NULL COLLATE pg_catalog."C",
    project_id text NOT NULL COLLATE pg_catalog."C",
    environment text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    reason text NOT NULL COLLATE pg_catalog."C",
    key_id text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    decided_at bigint,
    decided_by text COLLATE pg_catalog."C",
    decision_reason text COLLATE pg_catalog."C",
    CONSTRAINT variable_requests_status_rule CHECK ((status = ANY (ARRAY['pending'::text, 'approved'::text, 'rejected'::text])))
);


--
-- Name: audit_segments_2026_11; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments ATTACH PARTITION public.audit_segments_2026_11 FOR VALUES FROM ('1793491200000') TO ('1796083200000');


--
-- Name: audit_segments_2026_12; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments ATTACH PARTITION public.audit_segments_2026_12 FOR VALUES FROM ('1796083200000') TO ('1798761600000');


--
-- Name: audit_segments_2027_01; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments ATTACH PARTITION public.audit_segments_2027_01 FOR VALUES FROM ('1798761600000') TO ('1801440000000');


--
-- Name: audit_segments_2027_02; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments ATTACH PARTITION public.audit_segments_2027_02 FOR VALUES FROM ('1801440000000') TO ('1803859200000');


--
-- Name: audit_segments_2027_03; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments ATTACH PARTITION public.audit_segments_2027_03 FOR VALUES FROM ('1803859200000') TO ('1806537600000');


--
-- Name: audit_segments_2027_04; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments ATTACH PARTITION public.audit_segments_2027_04 FOR VALUES FROM ('1806537600000') TO ('1809129600000');


--
-- Name: audit_segments_2027_05; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments ATTACH PARTITION public.audit_segments_2027_05 FOR VALUES FROM ('1809129600000') TO ('1811808000000');


--
-- Name: audit_segments_default; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments ATTACH PARTITION public.audit_segments_default DEFAULT;


--
-- Name: __drizzle_migrations id; Type: DEFAULT; Schema: drizzle; Owner: -
--

ALTER TABLE ONLY drizzle.__drizzle_migrations ALTER COLUMN id SET DEFAULT nextval('drizzle.__drizzle_migrations_id_seq'::regclass);


--
-- Data for Name: __drizzle_migrations; Type: TABLE DATA; Schema: drizzle; Owner: -
--

INSERT INTO drizzle.__drizzle_migrations VALUES (1, 'b8395272e6b38f9757b0d04d949c6af21217b5d55b17e6ccd5e8cc7a44b23a50', 1795321605516);


--
-- Data for Name: api_keys; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.api_keys VALUES ('01a2035d-0a4e-7136-8959-9219957a3c4f', '01a2035c-ffbb-7601-b764-01cc4a1de5a5', 'expired', '\x625e1aa9335593e47b970ee4be6aabca6f086d3010fd92cd6d58b2c022df300a', NULL, 1, 3, 7, NULL, 1711544758862, NULL, 1708952758862, '\x854e73a3ebc3d15a2feb9b57036af59e73a8dda0886032a28d20be683b404601');
INSERT INTO public.api_keys VALUES ('01a2035d-0e11-7414-bf24-15ba8c07d4ec', '01a2035c-ffbb-7601-b764-01cc4a1de5a5', 'rotated', '\xedb7ad7c4ac20bc9399167492edf3541f5c14306cca889f1dfd870606a766cd0', NULL, 1, 3, 7, NULL, NULL, NULL, 1708952759845, '\xa2a9271873122b7a25892daa115631899ee0d6bb8048785e4504ae0bb9de8530');
INSERT INTO public.api_keys VALUES ('01a2035d-0c40-7232-855f-6af3c6928f50', '01a2035c-ffbb-7601-b764-01cc4a1de5a5', 'rotated', '\x7a97042482e61f547a7ed5764631b1cbf0b42f5486ded27f00e81b86805790fb', NULL, 1, 3, 7, NULL, 1708956359845, NULL, 1708952759360, '\x345238d71dc221085e9da543da0ae6ea63c4e5c942b39d679b5dbbcfa73dacef');
INSERT INTO public.api_keys VALUES ('01a2035d-402b-7605-8bf4-23e71517a8ed', '01a2035c-ffbb-7601-b764-01cc4a1de5a5', 'reader', '\x374a373414f899cfbc1c75b280ac63479d621b66e38bb1452be89e409a85866a', NULL, 7, 31, 7, NULL, NULL, NULL, 1795352772651, '\x8d1a3cc5cd602e7e7eb86ee9f6d94d81acf24cca6c035713c5930db7d5787e3a');
INSERT INTO public.api_keys VALUES ('01a2035d-4115-74f9-9200-e3067ccf9df7', '01a2035c-ffbb-7601-b764-01cc4a1de5a5', 'narrow', '\xdb5de1bd29ef499f6ab8fb03e1777e00b08be2f385872e5d8cd27c3109670742', NULL, 1, 3, 4, '{"shop":"01a2035d-03ac-7137-97ac-5eacb6576574"}', NULL, NULL, 1795352772885, '\x9d0578d221f993a64688399cf6a96453b8e7bb15b30e65283e3f21c60e296a5c');
INSERT INTO public.api_keys VALUES ('01a2035d-41fd-7555-bac4-d5ccbaf5f725', '01a2035d-19dd-7156-8c5f-edf25ac155d8', 'unpaid', '\x74b07b31e3b91fa8de2bf1b65e90ee01b426dfaf7f6b14a12f8da402114dfa4a', NULL, 1, 3, 7, NULL, NULL, NULL, 1795352773117, '\x94a1bffac6e8f82ea0442dc57767c42560c9f260c49730bdae0568b9f154702f');
INSERT INTO public.api_keys VALUES ('01a2035d-42d5-77a4-8dcc-8d325ca30858', '01a2035c-ffbb-7601-b764-01cc4a1de5a5', 'revoked', '\x85b61b8011cad518250dd6378d742cc1fe55448a8b5662e8ea3a4f9d90219f99', NULL, 1, 3, 7, NULL, NULL, 1795352773608, 1795352773333, '\x0000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO public.api_keys VALUES ('01a2035d-453d-70d2-9bf9-47da459bb24d', '01a2035c-ffbb-7601-b764-01cc4a1de5a5', 'job', '\x2142375e692932ab08203dced5aac1b26651818928b935b3bb6abd57e6c63077', '{"issuer":"https://issuer.example.com","audience":"https://keyhole.example.com","claims":{"sub":"job"},"jwks":"{\"keys\":[{\"kty\":\"EC\",\"kid\":\"one\",\"alg\":\"ES256\",\"use\":\"sig\",\"crv\":\"P-256\",\"x\":\"S4nvUb31b3ZEh2-XA5Y0L5DYZoQwmQROnxivPEaeY-Q\",\"y\":\"KGPcBdYYzVVG-KkAMjEDGdoYyW6Gskhapf5Qoe1tB90\"}]}"}', 1, 3, 2, '{"shop":"01a2035d-03ac-7137-97ac-5eacb6576574"}', NULL, NULL, 1795352773949, '\x80919d182df3167ac8cd6cbf287013c39d13b4b7b57798908145f83afea84fe6');
INSERT INTO public.api_keys VALUES ('01a2035d-4655-7352-a02c-503abc4f6fac', '01a2035c-ffbb-7601-b764-01cc4a1de5a5', 'revoked', '\x8c378eae3327cdfbd5cba708681bd17aa91e6ed7d859090b07244592c0f29c99', '{"issuer":"https://other.example.com","audience":"https://keyhole.example.com","claims":{"sub":"job"},"jwks":null}', 1, 3, 2, '{"shop":"01a2035d-03ac-7137-97ac-5eacb6576574"}', NULL, 1795352774462, 1795352774229, '\x0000000000000000000000000000000000000000000000000000000000000000');


--
-- Data for Name: audit_checkpoints; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.audit_checkpoints VALUES ('01a2035d-1202-7486-9895-8c691a9e90eb', 1, '\x90a9c406ceda4ff9e12435d74f149abee1a2045faf636e3a03982f2660babcbc', '\x1b36b08a9402fce8365da6f3877b6582abdb789109a48dd335a0935c005aec27');
INSERT INTO public.audit_checkpoints VALUES ('commands', 6, '\xe9417cf012022edf9d3202eb4d72ba9c63b50b7257b3b69b00d2e93c7c7c6ba4', '\xb4f29cf9e48125876244b430e4888fa663fdbbf22af03b04199481cbe6981c4a');


--
-- Data for Name: audit_heads; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.audit_heads VALUES ('commands', 55, 1795352775403, '\xdfa34613c63b249d35aec0514bf6ca9eb917ab531383ce19efa21d1cd89b2b0e');


--
-- Data for Name: audit_segments_2026_11; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 7, 7, 1795352761837, '\x12a35f804544f1ab94b4053ac31138384f95fea6701d7d92a4cc8defa5752f7b', '["person","ann@example.com","","root_key.rotate"]', '{"names":[["ace211b254615979"]],"entries":[[0,1,2,2,2,2,null,3,2,2,0,""]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 8, 8, 1795352762175, '\x105b6069cc44850b8be336aa3caeb63a01964e2590c38cd499368363b371b0df', '["person","ann@example.com","","audit.prune"]', '{"names":[["2025-10-01"]],"entries":[[0,1,2,2,2,2,null,3,2,2,0,""]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 9, 9, 1795352762622, '\xdc0a08a64c2e40d56f857c42badd7b70d0f91f85dd87aca1652534c5f4630f79', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","store","project.rename",""]', '{"names":[["shop"]],"entries":[[0,1,2,3,4,5,null,6,7,7,0,""]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 10, 10, 1795352762874, '\x9a6834700e5b9d0e99284a8e812ff8f8bab0f8520955794ff96ebfb2ec059dba', '["person","ann@example.com","01a2035d-19dd-7156-8c5f-edf25ac155d8","idle","","organization.create"]', '{"names":[[]],"entries":[[0,1,2,3,4,4,null,5,4,4,0,""]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 11, 11, 1795352763204, '\x9ff865f9e511ab65a7a221f037e44e5c5914b46546e05720355dfa8ec0d41703', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-1af7-7410-8cb1-b43eb79c58d1","blog","project.create",""]', '{"names":[[]],"entries":[[0,1,2,3,4,5,null,6,7,7,0,""]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 12, 12, 1795352763514, '\x60fc9a1ece834bcc1d87fcb50c97f2c214d712a4a7816eb8c8d5b4ae1058d6bd', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-1c59-759f-842a-14c2a4ce8de3","gone","project.create",""]', '{"names":[[]],"entries":[[0,1,2,3,4,5,null,6,7,7,0,""]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 13, 13, 1795352763805, '\xa7d2951ed8b1a59e1f17a0c19688313c89c1e388d2c62da59ae485536a04ebc2', '["person","ann@example.com","01a2035d-19dd-7156-8c5f-edf25ac155d8","idle","01a2035d-1d78-71c3-91ff-73a21cee7b1f","site","project.create",""]', '{"names":[[]],"entries":[[0,1,2,3,4,5,null,6,7,7,0,""]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 14, 14, 1795352764079, '\x6d5dd72a1a648ec002e619166ec1b90df1ffaf0932a68a6e664f4d46d399004d', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-1c59-759f-842a-14c2a4ce8de3","gone","project.delete",""]', '{"names":[[]],"entries":[[0,1,2,3,4,5,null,6,7,7,0,""]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 15, 15, 1795352764326, '\x1dbab197911318af299291b6a352d44189b50a412225d4c391d1147bc5cb078d', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","production","variables.write",""]', '{"names":[["DATABASE_URL"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",1,0,1]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 16, 16, 1795352764603, '\x2a5a5f2e8375eadb39aa51d07784bfa004aae890640483fe92d79ab0a471573b', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","production","variables.write",""]', '{"names":[["GREETING"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",0,1,1]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 17, 17, 1795352764874, '\xc4b4db44c66d5d5b268f7a22beec6c445ce3d640b6824a2404986f23210623cc', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","production","variables.write",""]', '{"names":[["STRIPE_KEY"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",0,1,1]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 18, 18, 1795352765118, '\x77ed176518471dfc47e5bad7cc647c9a455e63ca8a3cffd95d8a685d0b0ed8ea', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","production","variables.write",""]', '{"names":[["EMPTY"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",0,1,1]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 19, 19, 1795352765636, '\x4407ec058edbe6e7bf8b4df7187a8e132e1877e67a2c020e1c96c74fe0647cd6', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","production","variables.write",""]', '{"names":[["LONG"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",0,1,1]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 20, 20, 1795352765919, '\xc21aa2dbc863d1acef79d6a6bec79fe9787b18d1e6d9d048cc14c3e13ce31f74', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","production","variables.write",""]', '{"names":[["GREETING"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",1,1,0]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 21, 21, 1795352766163, '\xf749bc54455fc33e2412f597336815e83401050c00c16a0406df439eec58365b', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","production","variables.rollback",""]', '{"names":[["GREETING"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",0,1,1]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 22, 22, 1795352766501, '\x9671340196fe624a609de8b2813f99407adea8597f19b3aee26f18926188637a', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","production","variables.write",""]', '{"names":[["DATABASE_URL"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",1,0,1]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 23, 23, 1795352766770, '\xd309d4cc35e5d8b9d4e3c89db5e942da79b69e675aaa4173eee18ec9cc54548a', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","staging","variables.write",""]', '{"names":[["A","B"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",0,1,1]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 24, 24, 1795352767103, '\x7ed2ad14f03e6c0a5e6526b8d54fc0413b3cfd224233bf541c9cbdad3b2900f2', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","staging","variables.write",""]', '{"names":[["STORED_BY_MISTAKE"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",0,1,1]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 25, 25, 1795352767324, '\xab43ae79fecd7660094e09098bfe629f09f70bc08ee7d64f7993fcd532152b46', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","staging","variables.write",""]', '{"names":[["STORED_BY_MISTAKE"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",1,1,0]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 26, 26, 1795352767512, '\x9d4919a4283e5de896dcdc089ca9229a382ff358b5f3fe9644cb44ffa3a752c5', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","staging","history.purge",""]', '{"names":[["variables"]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,""]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 27, 27, 1795352767879, '\x3006540ce8487d2e7f8a848ffec03e5f90bd43b6884834136f7bc2b351aea84b', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-1af7-7410-8cb1-b43eb79c58d1","blog","development","variables.write",""]', '{"names":[["THEME"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",0,1,1]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 28, 28, 1795352768175, '\x8d9396fba8df56aea93c67df2401dfdef11bbd209e553f0e15b8e4730a60c98a', '["person","ann@example.com","01a2035d-19dd-7156-8c5f-edf25ac155d8","idle","01a2035d-1d78-71c3-91ff-73a21cee7b1f","site","production","variables.write",""]', '{"names":[["UNREAD"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",0,1,1]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 29, 29, 1795352768389, '\x78586dbcadd52c0dd5d8e53681b6fb7b66a411591624fb8c683dfe325ea1093d', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","production","variables.reveal",""]', '{"names":[["STRIPE_KEY"]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,""]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 30, 31, 1795352768808, '\x520f36710aea64c2f7ca5183b8cebcf5f1452ae786bddb7205648139360f04ed', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","staging","accounts.write","","production"]', '{"names":[["mail"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",0,1,1],[0,1,2,3,4,5,9,7,8,8,0,"",0,1,1]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 32, 33, 1795352769188, '\xba0ff69ab890e43723b410ab742befae4db72d9742673f0fb818c1aeb0e8dbb4', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","staging","accounts.write","","production"]', '{"names":[["mail"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",1,1,0],[0,1,2,3,4,5,9,7,8,8,0,"",1,0,1]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 34, 34, 1795352769622, '\x500d3793879d3210082ff8b6b76eafdb5e3d8f30e0e8be390b27b406314f5033', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","production","accounts.write",""]', '{"names":[["bank"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",0,1,1]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 35, 35, 1795352769981, '\x8f64894c19f95e02f9362bbacaae8cb1bf0c32d92295f7e5ad24b5a84ba2c773', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","production","accounts.write",""]', '{"names":[["bank"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",1,1,0]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 36, 36, 1795352770373, '\x3d073f70c92cd22a3b85ab1d23bf53abfbc5e195ed5112f3ccacad3ac6e0c965', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","development","accounts.write",""]', '{"names":[["vpn"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",0,1,1]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 37, 38, 1795352770661, '\xc5f723b042f0c6cad81cdacf1aaa4df99ce7743e18e1617e80da65b705d2c81f', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","staging","files.write","","production"]', '{"names":[["config/tls.p12"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",0,1,1],[0,1,2,3,4,5,9,7,8,8,0,"",0,1,1]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 39, 39, 1795352770957, '\xacabd2bb01228518f373bf43c71b9b5c88619078e5071e6212e516c53dcad147', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","production","files.write",""]', '{"names":[["config/tls.p12"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",1,0,1]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 40, 40, 1795352771162, '\x234793e11bb0cb15270431807a940194f8d6bd51e296b35770436865778cbc16', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","development","files.write",""]', '{"names":[["empty"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",0,1,1]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 41, 41, 1795352771375, '\x9da68b9ef332232d26501922d6af2f278162d15f74c9eaab98b5e8c4117eeaa3', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","production","files.write",""]', '{"names":[[".ssh/id_ed25519"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",0,1,1]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 42, 42, 1795352771603, '\x38019b35fcc1df5258a3447ac674deb0b421fc99493c11731abfe7727b099054', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","production","files.write",""]', '{"names":[[".ssh/id_ed25519"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",1,1,0]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 43, 43, 1795352771879, '\x741ee83b0a214aa8f7867a9fd8cd32fa2c112f0d0c8e62a7936c673852f1bde6', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","data_key.rotate",""]', '{"names":[[]],"entries":[[0,1,2,3,4,5,null,6,7,7,0,""]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 44, 44, 1795352772435, '\x3b3d7ec57dd5863f2193258078c87f5b9448798e6da4ca8e91eaa3ae7dbdb54c', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","production","files.write",""]', '{"names":[["after-rotation"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",0,1,1]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 45, 45, 1795352772662, '\x09c53975dee3ef221c8421ea9461617bd001c2ebad45986e45afcfdf372524a6', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","","key.create","01a2035d-402b-7605-8bf4-23e71517a8ed"]', '{"names":[["01a2035d-402b-7605-8bf4-23e71517a8ed"]],"entries":[[0,1,2,3,4,4,null,5,4,4,0,""]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 46, 46, 1795352772909, '\xc03c1f911a6f8b191bbb283c207d0f42fb35c6ebb710c04fcb1bf6cc8ceda3d6', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","","key.create","01a2035d-4115-74f9-9200-e3067ccf9df7"]', '{"names":[["01a2035d-4115-74f9-9200-e3067ccf9df7"]],"entries":[[0,1,2,3,4,4,null,5,4,4,0,""]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 47, 47, 1795352773129, '\xf6c22a05b72ada0bff8d5a6e483d9c176607b7c00d394d4aba01f43aad453b9a', '["person","ann@example.com","01a2035d-19dd-7156-8c5f-edf25ac155d8","idle","","key.create","01a2035d-41fd-7555-bac4-d5ccbaf5f725"]', '{"names":[["01a2035d-41fd-7555-bac4-d5ccbaf5f725"]],"entries":[[0,1,2,3,4,4,null,5,4,4,0,""]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 48, 48, 1795352773342, '\x115f15deb646fc806324150bcb2c725d63981898a7ccd64388e2ebb614b25f9d', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","","key.create","01a2035d-42d5-77a4-8dcc-8d325ca30858"]', '{"names":[["01a2035d-42d5-77a4-8dcc-8d325ca30858"]],"entries":[[0,1,2,3,4,4,null,5,4,4,0,""]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 49, 49, 1795352773626, '\x9a11cfaea79458d7c920b2770f24113fe287e066f805e7effdf435d64dd11fdf', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","","key.revoke","01a2035d-42d5-77a4-8dcc-8d325ca30858"]', '{"names":[["01a2035d-42d5-77a4-8dcc-8d325ca30858"]],"entries":[[0,1,2,3,4,4,null,5,4,4,0,""]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 50, 50, 1795352773969, '\x33dcdce15ec53d298fb475f6beea5b168980d09e84ae8b68dd73a5b64c73819f', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","","trust.create","01a2035d-453d-70d2-9bf9-47da459bb24d"]', '{"names":[["01a2035d-453d-70d2-9bf9-47da459bb24d"]],"entries":[[0,1,2,3,4,4,null,5,4,4,0,""]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 51, 51, 1795352774246, '\x77b67a7df3c0736fbede10799854304ac02bcbab7098286e9a4f75873b896023', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","","trust.create","01a2035d-4655-7352-a02c-503abc4f6fac"]', '{"names":[["01a2035d-4655-7352-a02c-503abc4f6fac"]],"entries":[[0,1,2,3,4,4,null,5,4,4,0,""]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 52, 52, 1795352774473, '\x9ee60c739ba57e276b22288b7021f8dcdd2c9aa2b0a0445d32dd8848671e82ef', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","","trust.revoke","01a2035d-4655-7352-a02c-503abc4f6fac"]', '{"names":[["01a2035d-4655-7352-a02c-503abc4f6fac"]],"entries":[[0,1,2,3,4,4,null,5,4,4,0,""]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('01a2035d-481e-768d-aaf8-0c9802fde919', 1, 1, 1795352774960, '\x9f23bf88c2adb52a6e7251660f63af8cd3700111a9f24c68f8974240da3111e7', '["key","01a2035d-402b-7605-8bf4-23e71517a8ed","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","production","request.file","127.0.0.1","Bun/1.4.5"]', '{"names":[["01a2035d-4912-77af-873e-b21d0280c9ae","APPROVED"]],"entries":[[0,1,2,3,4,5,6,7,8,9,0,"a98b5e9b-e20a-4262-ab59-7d081a4e50de"]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 53, 54, 1795352775183, '\xb2f2c14ef20b943cdd5d8cb2d47159ae7510e1179050557653218b6e3171fd42', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","production","variables.write","","request.approve"]', '{"names":[["APPROVED"],[],["01a2035d-4912-77af-873e-b21d0280c9ae","APPROVED"]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",0,1,1],[0,1,2,3,4,5,6,9,8,8,2,""]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('01a2035d-481e-768d-aaf8-0c9802fde919', 2, 2, 1795352775221, '\xe06254cde4ddcd17e0a2759e7e4e00e7a43cb17f64694eeef64886c7cfb94662', '["key","01a2035d-402b-7605-8bf4-23e71517a8ed","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","production","request.file","127.0.0.1","Bun/1.4.5"]', '{"names":[["01a2035d-4a30-7785-820c-1ef13f767964","REJECTED"]],"entries":[[0,1,2,3,4,5,6,7,8,9,0,"fdd7e646-379b-4e49-b997-9d3d4fc78b66"]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 55, 55, 1795352775403, '\xdfa34613c63b249d35aec0514bf6ca9eb917ab531383ce19efa21d1cd89b2b0e', '["person","ann@example.com","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","production","request.reject",""]', '{"names":[["01a2035d-4a30-7785-820c-1ef13f767964","REJECTED"]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,""]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('01a2035d-481e-768d-aaf8-0c9802fde919', 3, 3, 1795352775435, '\xab860221d07b621c797f9658cbde91872d475c3d92f9a1505dadb3161f09ded9', '["key","01a2035d-402b-7605-8bf4-23e71517a8ed","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","production","request.file","127.0.0.1","Bun/1.4.5"]', '{"names":[["01a2035d-4b06-762a-a0c1-2782554a4506","LEFT"]],"entries":[[0,1,2,3,4,5,6,7,8,9,0,"15a8402f-44c4-4c11-a50d-f07ab5a0e8a1"]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('01a2035d-481e-768d-aaf8-0c9802fde919', 4, 4, 1795352775468, '\x8d87a2684b5465d51ebb9bca31c81c2fdd8d52bce42aad53a234cb8952420175', '["key","01a2035d-402b-7605-8bf4-23e71517a8ed","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","production","variables.read","127.0.0.1",""]', '{"names":[["APPROVED","DATABASE_URL","EMPTY","GREETING","LONG","STRIPE_KEY"]],"entries":[[0,1,2,3,4,5,6,7,8,9,0,"ab02cc39-9cd2-4c90-b36f-bdbf1180bb15"]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('01a2035d-481e-768d-aaf8-0c9802fde919', 5, 5, 1795352775479, '\x1c8f0dd0eb0de12d1fa4681c44ee899bb0f04f915cf206dfe6463588113b3a31', '["key","01a2035d-402b-7605-8bf4-23e71517a8ed","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","production","variables.read","127.0.0.1",""]', '{"names":[["APPROVED","DATABASE_URL","EMPTY","GREETING","LONG","STRIPE_KEY"]],"entries":[[0,1,2,3,4,5,6,7,8,9,0,"58b619f5-c757-4329-83c9-ee2de5a431f1"]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('01a2035d-481e-768d-aaf8-0c9802fde919', 6, 6, 1795352775486, '\xe41173cab42b784443c25a4e9f685bb320321c875ae06ac8f6e128325bf287c0', '["key","01a2035d-402b-7605-8bf4-23e71517a8ed","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","production","variables.read","127.0.0.1",""]', '{"names":[["DATABASE_URL"]],"entries":[[0,1,2,3,4,5,6,7,8,9,0,"69a83a90-cc01-439c-bf27-c5108c10cb16"]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('01a2035d-481e-768d-aaf8-0c9802fde919', 7, 7, 1795352775492, '\x6a490dd244a57adf19ff1803f5232a864f6e3f4fd3a0e430078f76aeb12b49af', '["key","01a2035d-402b-7605-8bf4-23e71517a8ed","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","staging","variables.read","127.0.0.1",""]', '{"names":[["A","B"]],"entries":[[0,1,2,3,4,5,6,7,8,9,0,"a941b235-ad33-43e6-8c22-1cda6ac5244b"]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('01a2035d-481e-768d-aaf8-0c9802fde919', 8, 8, 1795352775503, '\x7a07d07c05fd1812c29d5a5eaaddba7aad49c7a0cceaa7755b3bf50111af0cf5', '["key","01a2035d-402b-7605-8bf4-23e71517a8ed","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-1af7-7410-8cb1-b43eb79c58d1","blog","development","variables.read","127.0.0.1",""]', '{"names":[["THEME"]],"entries":[[0,1,2,3,4,5,6,7,8,9,0,"744eba52-c6a2-4937-b9cd-f1d2820de5d5"]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('01a2035d-481e-768d-aaf8-0c9802fde919', 9, 9, 1795352775517, '\xfc4b45edaeb99f7e8482a1a299060282c1a0f91ad879fcf461c122bcbd2e5003', '["key","01a2035d-402b-7605-8bf4-23e71517a8ed","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","accounts.read","127.0.0.1",""]', '{"names":[["mail","vpn"]],"entries":[[0,1,2,3,4,5,null,6,7,8,0,"18f56e7a-1fec-436c-bb7c-8416333b5db9"]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('01a2035d-481e-768d-aaf8-0c9802fde919', 10, 10, 1795352775523, '\xe993c813f08ef34b2e207684281ceb5d7083b3c525441f09c1efed5392d7ebfc', '["key","01a2035d-402b-7605-8bf4-23e71517a8ed","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","production","accounts.read","127.0.0.1",""]', '{"names":[["mail"]],"entries":[[0,1,2,3,4,5,6,7,8,9,0,"db46c530-6e9d-4eaf-8b4f-139bde2f6de3"]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('01a2035d-481e-768d-aaf8-0c9802fde919', 11, 12, 1795352775578, '\x4584c88e5261f33e3ad3ccd4a60127766055dd7356cc7a0d336d0dd58f0c8d56', '["key","01a2035d-402b-7605-8bf4-23e71517a8ed","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","production","file.read","127.0.0.1",""]', '{"names":[["after-rotation"],["config/tls.p12"]],"entries":[[0,1,2,3,4,5,6,7,8,9,0,"246cee01-ebd9-4da5-918d-9fe305542760"],[0,1,2,3,4,5,6,7,8,9,1,"246cee01-ebd9-4da5-918d-9fe305542760"]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('01a2035d-481e-768d-aaf8-0c9802fde919', 13, 13, 1795352775585, '\x8d92f9ff6398ba9a4f194b73ddf17d0526a912b09686ea5159aa35f9a5767815', '["key","01a2035d-402b-7605-8bf4-23e71517a8ed","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","staging","file.read","127.0.0.1",""]', '{"names":[["config/tls.p12"]],"entries":[[0,1,2,3,4,5,6,7,8,9,0,"2b4c0eea-5a01-4087-8229-81901480825d"]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('01a2035d-481e-768d-aaf8-0c9802fde919', 14, 14, 1795352775601, '\x3ec018918075c4caa4ef9b54c0cecd49f2fbeb8e7e43db1fcdf88963f6414086', '["key","01a2035d-402b-7605-8bf4-23e71517a8ed","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","development","file.read","127.0.0.1",""]', '{"names":[["empty"]],"entries":[[0,1,2,3,4,5,6,7,8,9,0,"d1553cec-8e25-4330-a0bd-9fcc62828360"]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('01a2035d-481e-768d-aaf8-0c9802fde919', 15, 15, 1795352775608, '\x0795a494fdc4aa3c464ba2fc1fd7f285a43c2169ff0183e736be54a0c415a2df', '["key","01a2035d-402b-7605-8bf4-23e71517a8ed","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","production","secrets.read","127.0.0.1",""]', '{"names":[["APPROVED","DATABASE_URL","EMPTY","GREETING","LONG","STRIPE_KEY"]],"entries":[[0,1,2,3,4,5,6,7,8,9,0,"0d75daa9-d858-4088-a045-0e6d04263477"]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('01a2035d-481e-768d-aaf8-0c9802fde919', 16, 16, 1795352775614, '\x1bc1b50a74387229ccbeb6d0b44ca6b2ea41533908e5614af1a3af36789c7a73', '["key","01a2035d-0e11-7414-bf24-15ba8c07d4ec","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","production","variables.read","127.0.0.1",""]', '{"names":[["APPROVED","DATABASE_URL","EMPTY","GREETING","LONG","STRIPE_KEY"]],"entries":[[0,1,2,3,4,5,6,7,8,9,0,"91202d5e-a8e7-4dce-894e-824dc87e6479"]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('01a2035d-481e-768d-aaf8-0c9802fde919', 17, 17, 1795352775624, '\x5c8de332aab1aa76119fa9d2f7cc79abffefcb9b878d4905b15561f2c2872816', '["key","01a2035d-4115-74f9-9200-e3067ccf9df7","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","production","variables.read","127.0.0.1",""]', '{"names":[["APPROVED","DATABASE_URL","EMPTY","GREETING","LONG","STRIPE_KEY"]],"entries":[[0,1,2,3,4,5,6,7,8,9,0,"75ecb007-ab85-44a7-94ca-50a7f5c7b783"]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('01a2035d-481e-768d-aaf8-0c9802fde919', 18, 18, 1795352775656, '\xf4d2433e6584840b0f3bf19570fe5a2b992893d7cf45d4efaf036f99b003eb9f', '["trust","01a2035d-453d-70d2-9bf9-47da459bb24d","01a2035c-ffbb-7601-b764-01cc4a1de5a5","acme","01a2035d-03ac-7137-97ac-5eacb6576574","shop","staging","variables.read","127.0.0.1","","{\"jti\":\"token-1\",\"sub\":\"job\",\"run\":\"\"}"]', '{"names":[["A","B"]],"entries":[[0,1,2,3,4,5,6,7,8,9,0,"00445b47-27b3-4ca4-8a42-30b42bc73651",null,null,null,10]]}');


--
-- Data for Name: audit_segments_2026_12; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: audit_segments_2027_01; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: audit_segments_2027_02; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: audit_segments_2027_03; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: audit_segments_2027_04; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: audit_segments_2027_05; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: audit_segments_default; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: data_keys; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.data_keys VALUES ('01a2035d-1af7-7410-8cb1-b43eb79c58d1', 1, 'ace211b254615979', '\x010100000000552726dd81487e1a362164fbe117df2eeaa2f8506fbd0b8c6a79d4a466af8a45ebbd9a38cfccb13b151f7175fb56c4047c9558711f7ba10ef87c14e9', 1795352763127);
INSERT INTO public.data_keys VALUES ('01a2035d-1d78-71c3-91ff-73a21cee7b1f', 1, 'ace211b254615979', '\x010100000000d07d61c457bb62b7388d6019fe0b11fe32793f17435f54ea523d2d22828a96cb5e5f7a5a1fe5baf29c293b9181c919c3fc52a309f9c2f680767c4e63', 1795352763768);
INSERT INTO public.data_keys VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 2, 'ace211b254615979', '\x0101000000009c0495b4e0a37df4fb14f9fceca2c1c988288ae7f3796eb8808b942de7bbbb5db7cb69d822219d9ac60756b9add96a07bd9b1063b2b7078ec8210d49', 1795352771863);


--
-- Data for Name: file_contents; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.file_contents VALUES ('01a2035d-3844-7423-905b-7acd52d3b314', '01a2035d-03ac-7137-97ac-5eacb6576574', 3000, 2, '\x01010000000274e800581dc1d0be8fc685d12af7004be0e0f28ea491f9a7631c403eba396a409f585e4702952e1bc5963b115d82fa0b2abf003cb41e929e40c4b371f066ca65aead69b73edc3a46cde4bf4a8dacf3806d26af1660afe3ca39c08721cd3f36a02e5b6f60f8da1e93cc66d8999365bcf0478ee2cd658bc681c8daf35ca377fcaf048241d9f59e7775eb30fd1d5926172efa790be050f9de213aaa4e0e41a9a706a8f52cc93813de005161f773eff09694e139d85669daf68e214ad4637d845b60086a7247fd3f3970c4de1517a28affbf264540496797d2dc9229ed5af173dad7a94631f84aaf90abc286202e4d34fb1b25afd5d35955589edaa6da4b796b60704ed08c7bc66959de5a152b25b6b183fafbe90945b77daaa65400c7794856249da61f4cb852cb0e3b0d336d0a7293b1c24bacb1e5a41c68eee7eefd538fdfa80e31f8600758ba4aff53f3ee6af5a5d0f5c6ea5a44ee76cbf0d728164868447630d113942f22c1d752373b0b54d08a85354506b6b14b15a7bf6b4501e44cfa932b0cfe7e862781a0c2715d681a269d1f74636b2d425035ee6ee861df9ce80dd267238636a1f57b1d9a0a95273b6371b8cb305a49edb662997ca77f2880e67e45c55f264fb424ce526bd97ace72581ef10b556de2b997ed3b52ba24b463a4b31e73ecfc4bfb8a1ebea8e64255e688ef4c90c5f87e12220a5452b61333fe8772f43b9b9fa6b7ac8e8368c99e02137b9077cda974c20900ea6477754d04ac55dcb2e0cd4f1ed5b2b6c1d1234b45b7e419cb1a91efeadaba0d5cc34190b3a24f62076028014a1a7a6febe6cde03af7bb9b81ad3bab7bf2bc34b6b76edcc43175c52770acc77bf51381b2431692697e632cfb688084f154e408016186de3eebdc1990ec8fbcd66efbe2e6693852aab7ffa99bd23ed9ae1518a089ec9ad0577b05f91ef2cefd0292e09e762003fe1a082f20c359ee951d38c2498a0fba6e4e83120fc3e69aa662d067ba6fb3310a7d9137f743eff3e590039202fdd2fbc038834b5cab2bbb572d5dbc0bb239f4f6f97f2e23c06593fc480f0eded27116e3ed0ca7200a829c98066a4f859c25169ab3808aa3e7bce03be6c13364f3abe9591241aa5c02b9c0742e70a90ecfd9425a14d1e20562b099fc7ee53b6aec7d6c6ece0ad444dfc44c736ad2afa4a14d5d47298f005b292e7445dd41d313f2ad4e9f4ba65d89ea8d383707225d2f2d91e2e55981f0b69273ab840fecd32ac207cba75855b50b7eeed944c4cfcc0fa791cc200354e7d9345ff7e036de31678b29c48a913949f44106f72ae09ae5e45b71ca61aef1c06359d47266f2d2f1d15ad5831861d1fb65737e9596913ee7690405d287cf30c7826c3679330c8001e5ccf81c28345b308425b94f8c4f42ca1fcb9b83c050b3af5fa8232472efab9c2990798163eec017a49637cff8d9271cb82f2e3eb6c2d2e3f93327625fafbade1dea9383944962ec1f6439d36e79687061728124479bb3953c4c421ec4f14b8e913674e61190498ba74f416b7ee9c2f3a4ab999d10c784ddb2081474a631ff665fed60f8d75960bebdfe12d4479accc399137424c12776a5e136b3bfb6b7f72cf6ecc0ba13f7b8ced696238fd943154ca9bac3724a47efaba57aebe477ec7591e471a250b31f4fabe13f531a740aec0cfe6bca95289ea3f6baf288f60151e2c7ac029ed053e5c9a739cb0873f1a4f22e6cb4721bd7e9d9fe51e3b8d542bbd2916fe9bdf639094899212a800ffff75071926da82b99d6e9b08febf94daca86699df71db01b433a3ad8014e6158a12e8f17a1c9ac142b14d879cebf2cb348505b727faa9f334af4946fa77b1e07d654512199febe88ff71d6a8f209374fb3d0e79d1c09f5c36913b608f8819f6517e4ecb1d975492f91602f49b9c802825ad7cb3c3e49854dc25c89780e1cdad732975536b6ed7892d33cc98458c007c71ecb230fce42e06ce3ec3baa659a779f0e74baa54614d66ae815a2eaac6b3e23f5f6e2646bff4955daba770f038cc8193ca3dc3000699fa341388a56e495fff11c8a5547be56b4969615166d22294fcbff4ce76aa0ff027b70943bd08698728cbbab5068b710f6a8b4773c616b4e7a0efe182ef43372f702719c90c677612a908d82c3faa71664e0c0f667376ac6d99f5244445c95106cee40f1313103ad99da2a59ebff5d0aebb2690429cd46fa2a3e3163fce7a62ebd890662eab6b53a87de4946a235a763d8a523af61f7da8deac040256703f76242ddebcc963b4238f0031cb6d689078d3df33280ef49c2f0bd28cdcdc019e04309cfb375ba7ae068fc515195c9a03f860bfe0e855e393154ecf98859e0ae5714b01cc2009e4a96024473aa7a34e8aaa42f61d8c22f32a5ee91b255957db3b848fc7002cc6feed598e3662be3c7bb579126bd2c4c44bef602b37574b6461eff3b5b94610cc001209bac8c4ba0a41e6abf3f6d66d01c53e82d063f384a050d1ca3e79a2fa067f6aab92a86ea9b7b68b12669d5e6e022d82d377ed092b69e9679462fb1e85de3b33b84a9e935e7d09ed025dffe5d60fd47089b965fae1aea2de1bdb9b2ab301b918d429d733d97be7f80028e16e00dcdcd784a25a34e6b86730e876f42532b258b6983672f11bc9eac5d5742018eec83df10f93c9ffa6113a3684db5c29256b85df527fa0a3914f63f635a6226d6addc877a4cc3d65e493052e7a12e49aad60575d75418ca611fdff16b3a133e12d8f0914fb7aadaead0cb34e0b4519fb661b180e3984292cb65b366a6fb5d7449e8860e91648d4d00469c0d6d30c113ed4c8f2a7be69ba30e71501329a9f09d63b931b7915751d03b529c3c76e07d13b82496f4ecd430386d05f5150f7a275d775f936c3ccd2e0ef5a385e777ea8c44f9792e857e6d76151f8f2561f887b7fbd3b9b00254235895d9778f4874f21d7a14b86b8be148b9ae2d58e4cc18bbba8774b15d00bfb0150cc456d735ac06f3fcb79bb7c515eaa60ec4d55f9050717734afebf92779d8feb9582c47e6168a17d874435c211c4d5d9a04c44a64e3e65904d229ad3168ddbfdb77096869329ab93005bd01b9677770240b190eab5b5bb6558e6cb95f0367329cac7ed269c2da83d0c8a2e0d664bf6e47888f8b8dd76c40fc5096e1331ec1bed68a76884aeb82dce4cf0f0fc733708f41bd1a5c48ca7602081935ae0bcfe11b4076bb02e1e386e5f2351f4b3b08a9b2b42a2222d9b203a12afb6231f6e71c1e3501f589072d5924a74266aded73d3190cce5a9e5a93f5f1dc58e17391c51a74667069d4c9531f92fe02970b014d6f62e78a704b819341e629aaca777c0169ce906328b57cfc788d577a5655e10f7f485736c763e20803ad9576997cbe06b0dd9a4e276ed084bd082bf55234a3fdd2727e914a698c5b1757e6b250050ba722a50b158c527873ed09c7e400c39bd43514bb34b1cf1ed4a81ba365852eccfad9d81292e11a43b637cc6d85aae79e0b7ce13e81567686cfce0ef31b7f51e6cfe67fd1295aa5c613ae6b8f716e9f25171b5dbc911d8c3b81765ef46b47d8d3094b19acccd38cd43d88f9b34929aa1b78999e777267fb9700937c4d324c77d16f2d14eb989f88fb30163afdf33d5070fe21c74590bac22a77d1289ab4a040bb530b521f4fa3f16f23e53ec6c970178479799d03d1a3670aed510f23556b97c327ddb93f853b8519232c6c2f1a51c5414c6c918a51113a12d4cc2bbae295e7ff9e59e374330eb36e4696fbeb7b9de1462a59aa957fb87327ba4748cb37a0c4923d02d3affb8a61d95a09070ef5f60688c2ed48d9971222bd232dd2ad64c5025844c3c3fd3948b45d3f727d4f75f162dbbb03535091c14f6c42c1fb62c0cca68d6131f7a0d5a107588062304a9f8af0fdff8bbd2f3f1133e100625a667d2f6c0cb5fd4374868dff8318efd523498a1e230686e515e9de5e59a09340e8c9e60064ab75f170c10db6e3ed10e88eaa1f35952eaf594627a1cd3e32042da393d078d3a23ec29a957e60c63afab15c867ec577ddf80c4b8baa2883530fc449c4be73b72e0d4f920210722ae2e7489b975ba4a0e6e4b1a7cd264b1cac38f0d9b3aaa310b76cfaced9306507164c730620529d5adc897c9e8888e93debdf1230f640ba13d7ced5b92f4d4ba3de442d3ff73cc8592f21bb37460592a298c23f6edca51e09229d5a805e9017a9b85bc8bebc1fcbbf9ff931c64de85afce6399b85326b9adf23e2b5e2f94c77524d63bb7d83fcd1922f226fd1b2dbf');
INSERT INTO public.file_contents VALUES ('01a2035d-3965-731d-bd2c-3f1f4ca137ef', '01a2035d-03ac-7137-97ac-5eacb6576574', 3000, 2, '\x010100000002779518a8b0eff8e27c91e3a7960ee021a81f79054b37fb7e22786a76037d6161aa3599d422e7eb5a4c0652b700f035bfb178c8facbbe249149fe814bf923b38883f2c7eb203bc387267f9f117170919f819409bd8e5fe0c5317330e843fc22226572affedc91fad9afd4953038814f30cfaf3cbd4cec3107dfa7fb48c6ce64d6e351495ae1a12aae0c69ef5b36dca51253a5f9115f3e7ec2e4d9ed6c5339924ab98bfb46dc00d7e65872a01dd158f4573a52c4d3c07fcfd1d93fe617f4f9aefca48c494b81047f1f457b2f229836edefa4d0837b879f37cf31f8100db43d096ec0b73e8d863d0b925c28a2e7ef0fb6bd0b7c8cf16ae6ceac8f5cae09f3bdf3d98ded3169db6700ee06c7df5a0cd6bda8d8495ceaa723aff1d2a8050c05f83c79104031a8ba43b3fa67305e3b61b5ae98ebe751a0e05156596fe5f369cf385941de69ba2e63570470683b044d2a2ae719d3ee394f46385aedc4c565e83f5f262e554e190382e0278022700f66af56026d058b7237687c06221a17c99e7e26d068e0ce6c78dccf8bf735275b839a92163542dcf8eab298087140a0c490e35498ea37bc5eab378a999a55c362fb78c72ac52bb7719835217828b0bd772ba9a8137ae9975c65731a284110f19fcf9359573a4921c5a704d4eb99a1d8b4e77db41f15dded3f1c61464dc63a8b1764e4156738ae55ecdd00a551ff135e85f8933833de97c4c37cc4aeef047dc726829fab9f1849988827b7ddd9f63b997dd16f3d5462d724895548366984e59ce9cca9b4f7aabc38a27579bef940454ef05f82f5ad5d3d0e65267d70ef1c0a3b5257e09de4a42f9ea6e6b671d52cfae23b8e0efa1c6bb59805462f81c3c5b33a552aa1cb61c75078302c3b5519cd68c5b5bd410ee4f457fe0e8acea9b83b3dcd716d73afe31c9ef0adf9a10698cb6ef54dd9675a791602d6ecd641f1ba3dbf6654b06da7387e6f3cefc286d49658015032b19c6158cf314a9c9abdcf4455e21968bf44262994e48fe7d6b16358fedc17c53af2e261de1f32c35fcf48a00e25800a8dda0183b75fd5565790d2ec021a1c3541de17e3ea0975a66c03dd9a3d2baeb6db0997b7aae96c05f3952c77a21d17cd6ec73de9118a0bc54423360482a5fdf7c944cde6012a16b796fd1d5cf78ce87d17a8a54a679ef301ad00044433c7a716d7185e0e3d6c36043a0220bfe8998e5d669df85397481bad42349a8e5a092172153d0c64b1a5c5285213c402bdc1265692aac8f9656979784042700bfcbb7f8b5a8814b7fe82e37d22779914041decf083880113767a190fdd21e049b8b175bd508f9cd200a04e75bbe927ffc49e759fc4aa6c5adccae3f0741634bdd1ebca6a37f4820675ac4f9b482daa6bf24e024468bef861aeb05451e52ae463e58182e73ba426a31337add3fcf506184f4b7a422d3bb9bdee01823cc8778bb3834e0dd584bdbd210d83c48240126aa47636c54e34dbb4d049d4fd7e2d7b402ebe8c726f1394b6a5f456b921aefaed1e1a4e034df1c24451b32f33e268ec3c697484052a62c2f692b2c614b356691bfe880fa925824d84f5266b5f67784eb5346257f5d92c5d93495eefaa3285acb65009c55cd25dcb2e61780f24b8a67f243e6c40642b87635d9e2e706397c3fa1622cd65d758b0ff9cef876f03c035af237bb0c8b0da65dd4593a1d476fcf5dc86cb8b57d89b70dbc4689fdfd0822698084580b5893d29d64e3688011b19f5321325c0784716e4455092868d5b8429d1e3a255f161d77c36c9005d2dcd1d2d1a29fce8bda2e102d08dfc579112529a0835587e7c2fb0e7d9e15fd452508637ebc4d223966f0ce6af662b46120a2c40f4474486ffc603d0b8ac187da1af40582b256e246462f9daee406868d88311a007a4ba1683c44b7544fe4b174811a8db0c60e0188d4a55a6e08c11632c7a4ababddd6158f8c771e149989b05e79ce3f69a32fa5fd3b03761fef23295cd29b429e3f1cf0072cfb084e527a8ec7b45cda481f77d4ef5128c17eeaa513435927b1693b997952508a7b41e08fb8ea90661a766882340075b3fa04cf4468a82696e7dfedd6ee6b0f0795b1f9f68d2eaca469d9cb1816932c91af3732f1a20922f2f02ce44c825a7237aa7c66df1fe70a468b1128219ef98dd8263c1a951bfa0349c4892714c710e7c91d7ef33a1d727b3814337b62b624f12977b9549fce0a71132f6eaa404965c6c35f15dd0f4ac08cd88bb599a9ff690c17f8d4b66eb604613ecf913df4489938a98a7041a2e7ffe40b3046cab73b48be84b69cc40e2a77c54ed704255d838d35a15196f31224189f851a0834fbc7acc175121447f70d31f1bbc4336bbcd1f45d293cf48d67100f51b8a4fca952c6e356fe45a62eb0caeaa20ab3a9d0d7e92c6daee638ed79cfe076015f86c1dd714dd811829aa7037cbc633a141543519dd5ddc68ad4bb00d48e5c9a05034ea8757cdde576ef45d3a93a858654c1f280496658126a199c66aa1fca9051c1869fe25a0878b6b81d366d9109093a8ac62c23323318a57364fe44657a10b210f229c7ac8c64cbbaeb4011e6e92e852e3ecd91cbb8319e98646ee4d95d35005204dd18c933e4888db1a4fdbf9e76cb65fe3eec8c4a50ba66f4dda190a13d3e4986e45d7fedd2b5083ca41e7c4a72f2ed9ad8e60d87069d66456607c87606f3f0fd02c4de7c76aaf3e3c1edb438334fc46e68322473b07baf108036e5947977585c5491aaa9c7ee4fbb38a968ceac8fc8f10ab355e5d4ffadeffa08b0b84a6bea627c0e66acfa600ca776dca9ddfbd374289fe8aa10403ff2e32d742fde809e8e538aeeeff62113c7fce000a46bc24757847d5e3b7341a4e2257fae065682f4b1a02c04e5275b6ca7af5f6b9632340fc13a0afa114591705f26c736536bc5a67c1adeeee1ba09dec9794ea9ca64be66ba145362c9c95f83970a6df9b0d4995ac5d6ff25906039732b579b7ff44dcecbaf293a7f3a40399f7b891ae2e1324a82d33395198e2cd92df897864138ea00aec835e87fb6a1b4a4996a2326500b243613bcb44ce47235e67142bbce7de20f6585592a2ae958e1dc711ce2d624ac604672e78a8080738a60919a93589e23486a287e8389ff38cc9ac97b7da7d8923717f9cd286265abf3d51564c5e2aa3ebf591a4fd48d1334d623b365ac9b2e178c0bc37ede2b35fa8063329f41069fb003324f189c0e3954ac126b3ef30eb11f914cfdfb76617b30df3eb2129d9978b9bee7329ae30020cb39a5f2008090056418723b812a0ec97efc675ca84d027b1287327cd19dddf29f0f9aca0a3fda2c575708569f8870914384ae5928c2a56dffc4e27390aeccda7411b63bdcbbfc5a15c1ffc25d8e15a1f523ada4997dacde2f65d9b84c9977b9b6edff671ded901bda298a3a046f2514f22e32e89534ad6ec19faa0394d8db2893142a023bddb84a5c6a1f54713c0251499d7204cf7cd912554b680a75f6d00ed8eed3c2b4b329ab533d26759099e44d7aba0fcd8a4790879dad201abac5ab1996c523da3540e3ff69c1e1ece192957725db37405f7e3bccab25c5d4dc0619eda41f12421026a2f13e227a734e0b471545b692304bfc7875f8a0844ca83c06e81099fde23bf4b5b448e119f82a367c94b1ddc64ceba0718afde75499a15fe584c9a9193754247ccbed4600bd95e2b36669684dd9e740dd48d36f1a98b331594e6362740f646e334b9f4e73cc57398af6a047ede4ca899577eea9ba518a34e9e0328b731d4b9afac10c54f795fa49ae66f84acb1c1c7632291acec14b7152c5bcd48e70b667c33e0c55e6048406b3007202219dcd0e77a99610b42a3666896472aa3b9a8a2ee596310230392dc0260796fe8598c4c76f2df6e19efdf6c8f3558d4184d5052885806351535a475c52c921f0d8b031f62689585961279f0c204b767d823f8335ef967f2510b70c3ec4ec8cda3344bbdc4e78bf03a84422e069236773445a7b9171163755bb8f74d9137a22ac1cbb2b200f13e491403278adaea6461cf23b6b902d87e0a37f4d6e6e8afffad82bc9466496a4dec34d8d4ba416da1eaaf42f7c53cd06f917b839138731671e895e6f7785a3c2e8c0e0697e926f17454bca4ff928f0d57fb8be8b1a5afc01b00ecd149bae91aa6b9ea23e472fadf283ae4e37ecbe4a3c25acfd5080972456dd66f5ebab1f65b1fbce3cfd466bfb832925d58b5504a306a9858b3075e6eb1bebf629b208e90b8efa16c8dc9e8440695a3688934f7a2325a56ec66bf');
INSERT INTO public.file_contents VALUES ('01a2035d-3a3c-77fd-b108-60d650e45b7b', '01a2035d-03ac-7137-97ac-5eacb6576574', 0, 2, '\x010100000002ce7457216188b09567e95fa4f9cc65553d9e8c4fbaa800caaa18d597');
INSERT INTO public.file_contents VALUES ('01a2035d-3b10-77e6-96bb-e88910ce6cf6', '01a2035d-03ac-7137-97ac-5eacb6576574', 20, 2, '\x0101000000028808ab1d52762fa9fe0793d7cf0e7312983c4cd3d69317c45326751fb73a3686707e608381106e1645319b10061a14e2');
INSERT INTO public.file_contents VALUES ('01a2035d-3f23-75b7-b466-27c94c44d6a9', '01a2035d-03ac-7137-97ac-5eacb6576574', 25, 2, '\x010100000002e8a38a4014ecaaeffddb4eb54f4de320c408b27b890feeb6da91cac0d3a9dbc607eb1d508e8841209c2684eb30b17dff177884045e');


--
-- Data for Name: key_uses; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.key_uses VALUES ('01a2035d-0e11-7414-bf24-15ba8c07d4ec', 1795352775614);
INSERT INTO public.key_uses VALUES ('01a2035d-402b-7605-8bf4-23e71517a8ed', 1795352775605);
INSERT INTO public.key_uses VALUES ('01a2035d-4115-74f9-9200-e3067ccf9df7', 1795352775636);
INSERT INTO public.key_uses VALUES ('01a2035d-41fd-7555-bac4-d5ccbaf5f725', 1795352775638);
INSERT INTO public.key_uses VALUES ('01a2035d-453d-70d2-9bf9-47da459bb24d', 1795352775652);


--
-- Data for Name: organizations; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.organizations VALUES ('01a2035c-ffbb-7601-b764-01cc4a1de5a5', 'acme', 'Acme Inc.', 'pro', 1708952756155);
INSERT INTO public.organizations VALUES ('01a2035d-19dd-7156-8c5f-edf25ac155d8', 'idle', 'idle', 'free', 1795352762845);


--
-- Data for Name: projects; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.projects VALUES ('01a2035d-1af7-7410-8cb1-b43eb79c58d1', '01a2035c-ffbb-7601-b764-01cc4a1de5a5', 'blog', 'blog', '[1,0,0,0,0,0,0]', '[0,0,0,0,0,0,0]', '[0,0,0,0,0,0,0]', '[1795352767819,1795352763127,1795352763127]', 1795352763127);
INSERT INTO public.projects VALUES ('01a2035d-1d78-71c3-91ff-73a21cee7b1f', '01a2035d-19dd-7156-8c5f-edf25ac155d8', 'site', 'site', '[0,0,0,1,0,0,0]', '[0,0,0,0,0,0,0]', '[0,0,0,0,0,0,0]', '[1795352763768,1795352763768,1795352768134]', 1795352763768);
INSERT INTO public.projects VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', '01a2035c-ffbb-7601-b764-01cc4a1de5a5', 'shop', 'Web shop', '[0,2,0,6,0,0,0]', '[1,0,0,1,0,0,0]', '[1,1,0,2,0,0,0]', '[1795352771127,1795352770621,1795352775154]', 1708952757164);


--
-- Data for Name: set_versions; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'variables', 'development', 1, 1708952757164, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\xe59df5e70b16b25b73ae45251d2ed7437b8bae6c5bfe8706eb7fdf5a8366fa7c', NULL, NULL, NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-1af7-7410-8cb1-b43eb79c58d1', 'variables', 'staging', 1, 1795352763127, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\xbbb9723f77f2ccaa5afd319ce7149d80c7ff7cebe78fb3ef63de5c2197a57ebe', NULL, NULL, NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-1af7-7410-8cb1-b43eb79c58d1', 'variables', 'production', 1, 1795352763127, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\x38756a249d763ffcbfe4b22ad0ecaf7a55bed6d74169b9cc9852f78c5b038694', NULL, NULL, NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-1af7-7410-8cb1-b43eb79c58d1', 'accounts', 'development', 1, 1795352763127, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\xe4426310c2a36bbb02d36ef07bc50ada3513288a5fd769600fa1632354539a32', NULL, NULL, NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-1af7-7410-8cb1-b43eb79c58d1', 'accounts', 'staging', 1, 1795352763127, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\xa88372a65327687e13867afb9e8ae644fbd7c62ba65c7064afb39956bd5d6d8d', NULL, NULL, NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-1af7-7410-8cb1-b43eb79c58d1', 'accounts', 'production', 1, 1795352763127, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\x32707f78f00613acab5a0ef2750ae2f9b267f0df225ffd175cac8e4b159c09ec', NULL, NULL, NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-1af7-7410-8cb1-b43eb79c58d1', 'files', 'development', 1, 1795352763127, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\x61bc2c9a1ef2c5c097f43c145fd3824540d559def7b78ee7ac77e7446f2968e0', NULL, NULL, NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-1af7-7410-8cb1-b43eb79c58d1', 'files', 'staging', 1, 1795352763127, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\x89856b4a3138a2a0396b739af60a52d8cc3ff71bf46f0a9a7e6c9c34760b7689', NULL, NULL, NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-1af7-7410-8cb1-b43eb79c58d1', 'files', 'production', 1, 1795352763127, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\xa1dd74a0d5b2cd38a53c3185a94f45b61a8b460d97b429942b89fdae3972068f', NULL, NULL, NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-1d78-71c3-91ff-73a21cee7b1f', 'variables', 'development', 1, 1795352763768, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\x0a94f2422f616ab671db85816f882f6ab01db87418922b5a8aeaf8bdb1b2372e', NULL, NULL, NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-1d78-71c3-91ff-73a21cee7b1f', 'variables', 'staging', 1, 1795352763768, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\x80eb1bb8da01fb47e2928c1ba54ade0004f4006278baf1fc7eefcbfc168076cd', NULL, NULL, NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-1d78-71c3-91ff-73a21cee7b1f', 'accounts', 'development', 1, 1795352763768, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\x106d49f80fdcce6acbf73b73db65e6555c94cc4b9bec43f2027f3742330fc5fc', NULL, NULL, NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-1d78-71c3-91ff-73a21cee7b1f', 'accounts', 'staging', 1, 1795352763768, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\x352aacc212d1fadec1dbb44da2716c4301b11bb350394d81faa6135698e5c8d0', NULL, NULL, NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-1d78-71c3-91ff-73a21cee7b1f', 'accounts', 'production', 1, 1795352763768, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\xd0acebf698544054e15093c559559e8aa19bb514ee5a350392c38b879eb42b4a', NULL, NULL, NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-1d78-71c3-91ff-73a21cee7b1f', 'files', 'development', 1, 1795352763768, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\xe5496be6f37f879eb044b971114f268f7903bf93763cd5e87db415045ead84d5', NULL, NULL, NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-1d78-71c3-91ff-73a21cee7b1f', 'files', 'staging', 1, 1795352763768, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\xa3a179a7cc4272753dad64975a46d545ee85d789c064cbe8ce21693305176f25', NULL, NULL, NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-1d78-71c3-91ff-73a21cee7b1f', 'files', 'production', 1, 1795352763768, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\xc9fca69001836ea2ace5bac5c941b2dd1b9da742cb0165508961a2a1301165a6', NULL, NULL, NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-1af7-7410-8cb1-b43eb79c58d1', 'variables', 'development', 1, 1795352763127, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\x75193db6bacee2a8b7d4433a50e7812d90ce7ba196acd566e4c1ffbc10965c7f', 1, '\x344dc66a563023b254818c3d3aaf2b69555bc0ef1d1f3977b11e176421a53638', '[]', '\x010100000001e8aba74a0edfcded982a91957d8671799e54c8c4712940402ae26d71d28e5acf');
INSERT INTO public.set_versions VALUES ('01a2035d-1d78-71c3-91ff-73a21cee7b1f', 'variables', 'production', 1, 1795352763768, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\x00a7232c115cdc7239fa457c6c833b4dcb768cf6b8fb0c22f7c183fdf40fb612', 1, '\xfc1167b10707406c8f36b3529805fa53b30e407f14488fd4fb1cb2f6bfad93ed', '[]', '\x01010000000127b95e9e30e34775ea9a1f2b6754d42d454ad87dcf6834840b6f5c7a1098142f');
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'files', 'staging', 1, 1708952757164, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\x359b2c645c916f22fe2c240326a2ad089d8752c0a7980dde3d43e8278d0ff090', 0, '\x7fea39d06166e35c38c726b4a728940668ed2713523b960ea502e53c6a52a384', '[]', NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'files', 'production', 1, 1708952757164, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\x97f81245d5414bbbea0bb2789dd18ec93404d1b4308e649d7e55e5678028b5c6', 0, '\xa2e78b628a4656b996c479513c3384ac8cf79b68bb632a1e2d2472a489805b88', '[]', NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'files', 'development', 1, 1708952757164, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\x3119ae8aab5b88c0e8bc1221a3612911823b6827438ae5dbbc9689137dbc4239', 0, '\xdaa9d69942cf113d0d67ce392ee5d62d4138470ca750ee3ed3a4f22e663ae064', '[]', NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'accounts', 'development', 1, 1708952757164, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\x7599412e7fc9e0fc7ffebdb1498dfd9d95f66a54daa2163443f894db93cfa1e0', 2, '\x87a037f3c980b54ec99196ccb99b9824d59a636a03ef1d9f3210a3895649e469', '[]', '\x010100000002d737085634724a34260e1aaa42cc82264c04a6af4b00f5a4b39478cb9d680fa3');
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'variables', 'production', 10, 1795352766460, 'ann@example.com', '{"added":[],"changed":["DATABASE_URL"],"deleted":[]}', '\x6af3516789c93d63ae1fb6a336ddc53cac601d5c031a0c89017b4e6f86c82e60', 2, '\x823244727a715cb2d53bac37557b27523ad2b6d8a4cdde66628198f004649d46', '[{"key":"DATABASE_URL","updatedAt":1795352766460,"version":10},{"key":"EMPTY","updatedAt":1795352765085,"version":6},{"key":"GREETING","updatedAt":1795352766130,"version":9},{"key":"LONG","updatedAt":1795352765556,"version":7},{"key":"STRIPE_KEY","updatedAt":1795352764833,"rotateBy":"2027-02-20","version":5}]', '\x0101000000028892f587e44e560c89090f97ac29c0cb5134044be6e275aaed6b0d87c019d3f6b28016bff205d71618b2a488a15f3191edb103936d4b5d09fff645880428943ba731f3a0b4552076ed084c95c5ef13722da2896b51e0d3ea96e641c30752d8aea75b5fb91d61687c77d8bf9d4839b67304fb373638004b1da9e138a108112eb2eb9ddafefc75ac9f7f66ffb2fceeea927b1edbdbbbfdf1cf376d3b5308650f36f29e8d98e5de81c3018bb428bf7e4c667dada0f74cd4ac0967e0f6cc1a93ef29dd89fe7ed6b040bedd8f5e27e3ef2af136ce86076f4de36013a5d40f36596ff744c35f04e749f90d0df1c67702f3550f7e4b817e4b748f00c00657b0c405a086ded668d6c655efe2e99d53c8f43c0b3dfb82722dd8bc82b47897dcf68e292bf3b56865d8ca55a1c683495949df50087e333480c7a020be1f96f887934d5c25e8f2c9133e06db5715e3e7d460f3394885740133c40d2db5cd1417688d70601f3a898d26f5ce00e7774ff8a14687f278c79fd6362b108f6eacea83ec47dc63ab0be79d5107ddaa60d2a35c931f6d68a737300b0ed07768cbe8da4c2374bbf10854d777ddca4585f82749aa2112e63df43a93b0fa8a47f78c272b8cf0649d5997bfbf3b202923fcb180def3f6062cfed889f42aae55f707d4bb71aaf6c7de29ac33fa09dd182b3c4a343a78cabbb631961ab9d70d887c6b1f491bdc443b5300bd6851149aec68c3ab7823aeb6df4d86390d1e3e325aaf5595c6b17ead11b06350991c1507eccea3c01de53d1f47effe85ace86fae8e45824fc51e7b75e62532a0390ef8fba218180514cf7b2a1514558eec3efb4b1c7cb1b267b311cb6d8d9800ecd96cfe111b227f26501393d491c1ccbcdbf8630297480a9559464a6bae2f56285f7508620df3b1892dde6bdf1564f057c0e5f3fc76da033515412ce3cafed91d47f002f25f56172c3715a3b55498db1bf228864e4c806f4464dbeb2ef0f4db3c8c1b2bf9e0ab08a3821e9831d4b1213aea48a627366389f3941608ac696c88b34c6870e06e75c3147c550ee8a00c3e0874629b29823b3627b856807736644d65750c837aae558c770bd0381835704a020cd10112b06f937db35fec84d77d6ae74a01433031323568e44eb1c4be78a61fd299c46c84cc1a919558433b02155434a3d7333091c5c13302c6098b38cdad45c80898917a509a601d1da8035906a7289f9e396e7018564d7d31bf047d9e9d8c7d871d1c13f31e91c8c4bfa18e1c9af826fa9e08b097c3f95fe42d69e2ce43ff3afea53735c5e599208b0c661f17401f1216f42a7c284b54f2c15f7002e17bb1787028b91cc9accb97160291c92c960f444e3b3c6c1010f8069ef2ae64a328a7b3e7ae6a267673f0c9fc2dcd28a385173fd91fdb60dccfc9af8ee2412b637f8e458699c0dd55797155b71e974502bd688fa5de05cffee69c5d5ae27c09a1dc85f12aebe03606991199a8970e3038fc12033c488a9bd392741d156189e86d783e3a781dd9a78c2e6dc37d31dba65c0879f538b12f5c1b4964c4698454615325e9b72bb4f8c2434b914e3b5b2581d79aa268a27e7d1a48f38dbbdfd402ff32b730ccdf4c9dde746f60cd4176327f507b357e746c64706433b4689eb904e05958cb7669610788d162d0d71d018a8ea9ee0ee5579740e716caf32734cfd5e4827b38c14295427ef4eb5490bc3cd70c708efdd5583be4b759c268d36c2ebb4aa0b0fdbfc50dc21722e0e79401f114b94ea1124281cf9e13345161db9bd73c094067e8f5dce764319b0b0b36a45b3cac2bb3852db1e5c54e7cad31a60637aa363e0f44edc4781bce17ae1d4048f1239acd45db743f6cc5d82aa3657e5a56d2363539644af52a5a8da94b0f5ad56fa7b6856fde94b905842054d1c8b046011be160f8f15f7e83cb2e98b4eee823dc696b05e17b5d116dfec744ffee2aac13b8a987b333280139c60b85121286a0b7e68bde391cd7cb62deeeaf8a2c8e5e97dda5c881cba0042e48410775e9c4a6a368f43f5f5701004a57fafc0d5608e3a51505bbd0171433684faf20c0032f97f3471c7b53e2d6f668b68fc6ead386610ed56016ad7fcd0041655bdad49be4c93d4e9e71ba4d8c9e53e8f21341e96633c0137fe49ff25a7abe213db8da68c79f4ec24a53538c653b5a445f01dc0f7edf2d409576b954a2fa56930bfa99c77affcf57885a6aa30782facaeffd73daf4deb4e693689831b2504484e7b68e887e0b7ae619173b838894f3ad4152650da131cadd12b82160c3482e6115be851924350a543c9382fb066b1a345f63751e07386e12f173a00ef843ac933b32ac728b65f9ec0bb84ef006468ebd2c529ed5dc1f3fd1aaf4f018f59d613d5217f8cbcf057a9e37c793e04dce7d408c372c5711b40e4d93dfa0c09a3cf42f947292cb878d4bd08994e94e211b153f7365deabf065ac782b7e0bf2180fb13b5e135f28da080691d2a5551f5efe13ff7d43c6eb6590a6c60f841348bca6785956fc91f77ae25ed92d93bc85f2ca1c446ac9c0f9a7f55caa711ed7e4578ea8089b4fc9777cd5ea5c9273819a2f863beff6a0b77a3ebdbeed88e15a4c20e6df96f59df9fa56eb66abe244b1566890aa901831c1d5a0493e06ef453ba43b26244f386a4ec286d7da9b753819b8b0f3efb87f261973486a72cd505adda0b27e2fe4043789c7fb38c330ee2e1565c6a7ac7abd9b6092954631e4af09c52e5dc818916db0360f6584aed10e0f579d14fcc080857f13270344fc754aa84b2f44da1b054e89bdf89d28cb1ee89b3f9965d8835f517320518c8547f1fc855ce70e863434618b137aebded5f65437b50e92cc2ba4b96a04b4ced3f3fdcfb4c837c38be3d1bfa333705f60b295f43f3f2b722e92c08b1530ea7a2655f24b126fa84a1553083766284a65b93761efe6dcd96be82c2ca8ffb6b3a8bfab196616554fffca9da3a61d4fe41b17b26de7cb45b05ffc2bb6a03c6e8aa7724063e4a94c75e998f0a0e16f5de776e44d5c1ea2807aab6d6d64aa81180504ae72425b88e83ee623ce273317cddaf6a8c1c0cda592ad119e678caaa15f25ebcc7dc2bf9f4eb4680742750750d75476a9093680f3b84baed18dfba749a48d8c1492f95047d85ba18509c74d1dc3d9c4cb78b5b5156986448de9ec4b509f96be17324ecd87f7d01312cacd091a53c7a4d79151a707fc9303daf28fed05d4db4e8bdc5abb5e77bcd6b9cd17a11352d426de12e7a8aa7e665d76c1a74c3a6857aa2bd41b524f22e941c7e8d9024abd32b7b9ac57d39e88ff47327d3a090af14e4be35c3502bf5253e3d822f24d92120b2fa29d44cdcee36b79c4af465079572aee62400484c6fa51a3cd010fb4b215b9a730f16e05efca9e750883481495c136270aa4775775fd704e4a7e876f145b62c2c27c12d947b264d3390fe15269c152acfe72c63956a45e629d77b40d98cc7608bc51b24f702c179eda0a3f55fb53c750e2e260136056b010e21d35783fb5b3a45a6d961e33143d7ed1078e18604664854a02a02e1598a3e5f17914a4cd7ad1834dca7cade8b6f19ef1328dc9dc0e8e577c8bf7db193bf4c1568291a448f3f479a29ade019f6e9136672dc69b843f909cd3bf2203f67e1a4a61510362b819b44864f4eaf28b1981d448decb9b928f310a39f169762f2aeec78ecdf3cb2088936b5d3981cc3d54beded141008aa4f28c18d44cebb6f9dd6de670800e5dd645af1045674b67c9aa37752b7883f689363731af2748ed2247259ae0176f9e5ab1972c1b1f7bc84a3b1856f11ebd75724e92d600ea8f1802e21c0f097ad2a0fc6e4e5c7ebdab68752a3efe6d0d0d5b92f588a68f65480d09cbaf1d0a6b7fb985ea9b52937fe405f6af487fa3ea685434ece71fafd855ff605a393b4673a741516036507f8df9743f97ac7989d35da6943ef20d5900aa8fe5c4d9359d9151d2e28e400c461eba529f36fcc52b4b246d08a4735aa1ef51c22b1a990757c57bf0ea8b47564274e8ce3bfd584b49954d34b18b57b8be7bedf32cd37ea4a56c81c9c7d5e7b175166185db86d9c4eaa0bd5963e88822bcdd42e423cf1bd22d996b25a3d8c4c1274bb916dc');
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'variables', 'staging', 4, 1795352767293, 'ann@example.com', '{"added":[],"changed":[],"deleted":["STORED_BY_MISTAKE"]}', '\xdc3d893493a0a6a2d24f5fe7d2baaf843acfde1725c0095438e659b07d43d477', NULL, NULL, NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-1af7-7410-8cb1-b43eb79c58d1', 'variables', 'development', 2, 1795352767819, 'ann@example.com', '{"added":["THEME"],"changed":[],"deleted":[]}', '\xaeefd9a6d20186337429d7baf71b2848591a70122af281cd2cce119c11d779e8', NULL, NULL, NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-1d78-71c3-91ff-73a21cee7b1f', 'variables', 'production', 2, 1795352768134, 'ann@example.com', '{"added":["UNREAD"],"changed":[],"deleted":[]}', '\xae678c77b4ef8309f0ee9c336bf6cc64931673469dc34984edeaf3c5c7fde2cf', NULL, NULL, NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'accounts', 'staging', 3, 1795352769101, 'ann@example.com', '{"added":[],"changed":[],"deleted":["mail"]}', '\xa5f9c36f72ed793372e635e64c2860591d2d2bc567851460624df024acb4f986', NULL, NULL, NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'accounts', 'production', 5, 1795352769899, 'ann@example.com', '{"added":[],"changed":[],"deleted":["bank"]}', '\x9c40829ff521d5fbc5c08cc84d961d8d78c9b70e633c259b19be19f034ec15cc', NULL, NULL, NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'accounts', 'development', 2, 1795352770328, 'ann@example.com', '{"added":["vpn"],"changed":[],"deleted":[]}', '\xd69911a23755c6b6641c4a73f2631dd10fc83f21fc5f901561e9de6b2b9a9285', NULL, NULL, NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'files', 'staging', 2, 1795352770621, 'ann@example.com', '{"added":["config/tls.p12"],"changed":[],"deleted":[]}', '\x52a25f92c6c4521ce12ea2239d14bcd7b253941855eab6e0a29f1e5817316fce', NULL, NULL, NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'files', 'production', 2, 1795352770621, 'ann@example.com', '{"added":["config/tls.p12"],"changed":[],"deleted":[]}', '\xcf8da76289ea0587d68171869a505485157ba428774de59746c7f4fbbab3c328', 0, '\x52a5ede74b902be12c0418f006346e55ac2c0bdc86a1c905c9a242331e6e5fea', '[{"id":"01a2035d-3844-7423-905b-7acd52d3b314","path":"config/tls.p12","name":"tls.p12","mode":"0400","size":3000,"sha256":"f49a000aeb937be459f9cf5769cfade4e352b54f4890d7d7b7cd12e348df68cf","contentType":"application/x-pkcs12","updatedAt":1795352770621}]', NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'files', 'development', 2, 1795352771127, 'ann@example.com', '{"added":["empty"],"changed":[],"deleted":[]}', '\x675c4b1166222c5850c2210b0afd6ec03ec388847f437b997f9ec670458b7f2a', NULL, NULL, NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'files', 'production', 3, 1795352770908, 'ann@example.com', '{"added":[],"changed":["config/tls.p12"],"deleted":[]}', '\xdee3733aeee1613a13a5e1242c9f2d9cdf8cf9e897dfc85f6686d4263d44fa77', 0, '\x03c5dbb67a135fdb84030ad5fd0fa4273fb4293c32a09181d7a3dbc546804daa', '[{"id":"01a2035d-3965-731d-bd2c-3f1f4ca137ef","path":"config/tls.p12","name":"TLS of production","mode":"0600","size":3000,"sha256":"919ac043b6fd030b9894ded12fa0d2291fbfea00c7807bd9c75fb433b71f7675","contentType":"application/octet-stream","updatedAt":1795352770908}]', NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'accounts', 'production', 1, 1708952757164, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\x898eec34b344c115bd28028673f30c3e3c6bc83d31713a3c22fcdb100e4c4973', 2, '\x2f783df94a49e1a402aaecaa46f69add07ed6debd6004eb7abc384b308ddf958', '[]', '\x01010000000299501899f9b84447cd6ace181e12a3fca47f1bb9f1962458aa112644d85a1319');
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'accounts', 'production', 2, 1795352768727, 'ann@example.com', '{"added":["mail"],"changed":[],"deleted":[]}', '\x8a0cd6d338ac1c760e60196afdc693de8a225e6f26ce98f756360330851ef3fb', 2, '\xa410d0cf3cdf17ef90d17b48ca8d4557c82b433662fa6ab2fbb067f3dbdb2656', '[{"name":"mail","updatedAt":1795352768727,"version":2}]', '\x010100000002be5202774e5a73cab7fd7f4d3a1694dc5c1419f1b5759f2a0d8ad1f8196c4508c8f774fa4804ecdf9bc88fd11f7834f5904166a59b0c4624c5152e9f40c36f612d318096793cfafadbbf0ee618541b243c7b');
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'files', 'production', 4, 1795352771335, 'ann@example.com', '{"added":[".ssh/id_ed25519"],"changed":[],"deleted":[]}', '\xf9193599e76ea0dbbf4ad54cd9e064ab08d07ee0144f22359f2b3780ad24e92d', 0, '\xf75dcc3213a2bd7e0cc313f0488f21af2522cd5bc5fbb5ff01edee954c54029c', '[{"id":"01a2035d-3b10-77e6-96bb-e88910ce6cf6","path":".ssh/id_ed25519","name":"id_ed25519","mode":"0600","size":20,"sha256":"97ec75e05f99d31938330b94faa35866c106c7541ea2b064b60cdb0f50dca781","contentType":"application/octet-stream","updatedAt":1795352771335},{"id":"01a2035d-3965-731d-bd2c-3f1f4ca137ef","path":"config/tls.p12","name":"TLS of production","mode":"0600","size":3000,"sha256":"919ac043b6fd030b9894ded12fa0d2291fbfea00c7807bd9c75fb433b71f7675","contentType":"application/octet-stream","updatedAt":1795352770908}]', NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'accounts', 'production', 3, 1795352769101, 'ann@example.com', '{"added":[],"changed":["mail"],"deleted":[]}', '\x6ef8af47cc730385de177dda042c6efc7722f79919b4db06834351f266300b6c', 2, '\xe8571724190f1cda12bb3d26d925fb56e6d767bce5464f09486d6865a2e2c315', '[{"name":"mail","updatedAt":1795352769101,"version":3}]', '\x010100000002f1986f1454fdbaffc08703a0fda55f5c8b19b6611c08ca94c77dae774bb669c6c09027f7b96d5c7f2034f35f44bd68f17248904fba20b8285cc11ddc5dee92eed0f3052c2ca24463435338c974bcde96576b305cf59a7e3d88c12fc214f1014dae');
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'accounts', 'production', 4, 1795352769561, 'ann@example.com', '{"added":["bank"],"changed":[],"deleted":[]}', '\x54433715fda3d0f57072a34284851e5c1bc9be205127015bd9ab4e892c6d21c8', 2, '\x92abff8f84f4019166b744796beb5f5ce87d368a29bc0425b9041e7a37080862', '[{"name":"bank","updatedAt":1795352769561,"version":4},{"name":"mail","updatedAt":1795352769101,"version":3}]', '\x0101000000022c0829d92dde1f83d7f5b6972192c879a93db0620d3b267bd49d76dae62845aa15f9ed1a552e0e0ea8a4e495cfbaadda5cdc0eb03428ab2058b0e33f4652ec8721c6ce1436ac4cdc517ac6e6df59083289ec1225566cf937151adc31f8ed6e498a85bf4598e125a9977d43cc7e16677926e903fd5e828072');
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'accounts', 'staging', 1, 1708952757164, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\x4bf9579368d5f6bedb928099ec8d4a22633cd7e773f59b23a9b9a08f2fe348e2', 2, '\x83373ae9cf6930447d25002398107e690e2996c99a0ef444c8127c7f84e363a5', '[]', '\x010100000002921c90f6738c820643a0ba51df42c3731af1f1a369046b41d749ca9ccd87a667');
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'accounts', 'staging', 2, 1795352768727, 'ann@example.com', '{"added":["mail"],"changed":[],"deleted":[]}', '\xbecc076a7d4b8bac08dbfe693c1d291d42850dfefca615e7096fb86ccb21bfe4', 2, '\xa760e2ab5a7699b22ef1efe2549ee1464ef5f156ac54cf931e7a651cf22b9692', '[{"name":"mail","updatedAt":1795352768727,"version":2}]', '\x010100000002626e39566dddc39299426575927b3a4ac83cfad3fb0ef75452e045cb23f6a80bc3486e78c83472724741e6e22629e622bf8de7159bc5dbff2a13b89e456ff7046287aab9e5a3a06e224e3ad156640caf9250');
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'variables', 'production', 1, 1708952757164, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\xd6ed4f4b8c6add0bcc5dbeb9d72390d095d4d9c01905e86e09f1de5b1f333811', 2, '\xab5eeb8ef152130d7932a97ab2e9901af1388ec220134cb17189e2318f1593fc', '[]', '\x010100000002d356e790243bb7dec045b74b7a2dd89955aabb8d281e2d92321949254e4aef18');
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'variables', 'production', 2, 1708952758063, 'ann@example.com', '{"added":["DATABASE_URL"],"changed":[],"deleted":[]}', '\x307b03f7a5f936d2cd0ec0f7da39dacf1b1a6d508625e83ecbb15e94700bfafb', 2, '\x15ef5374c7b4f7d9b854bf0724b29b963109936d6acc72f1b2c8c2903b4014f1', '[{"key":"DATABASE_URL","updatedAt":1708952758063,"version":2}]', '\x0101000000023752985827d1a1f0c139094f98003a05f7558cc50c5b6043371dbe083abda6e7beca17edbb08ee1bb239bff721053ca8b3af7a012d6545d53103e0c54a2af592ffc52bdc272315564d374f9308d8f68c696e4e84df2797e722a01251067491f96ecefe5130c4a027cb6ff703d8a12401b238e32b3a5965492375a910');
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'variables', 'production', 3, 1795352764293, 'ann@example.com', '{"added":[],"changed":["DATABASE_URL"],"deleted":[]}', '\xac4238de48cfa7e2118c12133dc9b472da61f2f8300d5711ad87fe41fbbfecf0', 2, '\x9d2b35cc902deef8d6f5b85fd2a9d5f623af440ad6ef61b74055773c89bd97ea', '[{"key":"DATABASE_URL","updatedAt":1795352764293,"version":3}]', '\x010100000002f6b0123bbf753691d2e9aedbf22876c990aa27a28c34094e870c1a22d524ef6f94d1b04993ece4e12babd5b3553e9ed3a7fead58c27156a1a7606b2370f7afc684fa191f44832f4adfa0efe9a8280882f980a90ce288e57bd9bff79755dbcb53eb50f0ef36d3155542eb7f1eb4641dc57c88d75e303e51b8d7b8386dfd');
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'variables', 'production', 4, 1795352764555, 'ann@example.com', '{"added":["GREETING"],"changed":[],"deleted":[]}', '\x94ae35e41cc575c35c4221e443247a96db04fd394f3849bef9cbd83c4cf02b5e', 2, '\xccaf6a4dbf6f88011e562096e27e0cd0ab96c4a317c12f36f1e4cd976afc0eff', '[{"key":"DATABASE_URL","updatedAt":1795352764293,"version":3},{"key":"GREETING","updatedAt":1795352764555,"version":4}]', '\x0101000000023d5d8b7b77867ce1129fef479f505025f354b3a431057740dd32a7831e13c910e120e7f566fdb2c8a0b2ae39efc1da7a088a82e9f6eba93474f09d8df7fa010b73cccee7f255f7ba353bb06c189b74a4810c761bd6cc05fe0a315976142bda8f961c4c1d260d9e19caed341e464179038175f4c954edc942ad864e76c782496f31dd9ce21f0917ac1b833f4458bcd4d90fff3bed3cb304a4440f60fc5d86c76a902263ea8a8890490c5db9d8faa15b31a0f28a384041e26de9a914ac7fc4542fd36b76a006492c1aa1d110ace71e77d39616755689f17819be68');
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'variables', 'production', 5, 1795352764833, 'ann@example.com', '{"added":["STRIPE_KEY"],"changed":[],"deleted":[]}', '\x232682b9b4913743a3fd23a890d5e385b923df1918f441e1d1644dfb15f90055', 2, '\x29b4678cecaaa8e3aa0f1b87f05d6d279dd0912dae0cf33b630ef0f388abd507', '[{"key":"DATABASE_URL","updatedAt":1795352764293,"version":3},{"key":"GREETING","updatedAt":1795352764555,"version":4},{"key":"STRIPE_KEY","updatedAt":1795352764833,"rotateBy":"2027-02-20","version":5}]', '\x010100000002faa81cf6168d98ddfed9ceb3928cf8191701bcf6d960f48bea96ca4e4fb06641e267d40cb7121af9277973f99d672970db01f2f1297ea2fcb4d67dba4733361ec20ef10f054d1d4786482ca395a55ccb0b4ac85d23a4a8f8590e8ff7fac425023fb6b66e6f04ae515f59fcfcbb244db7181cee5fb7c23c6163fcb3bcb83d5e884217511d55cce29a8061c9f054278417eff5dbd24309a5f9059fb7170b2c2df1bce35e70f85fd0d201a7c4b00bf624ec3cb1546b907581b05592ac14c11c307bcb4f3c806718368ec19469f247fe7565e6f525763f9cee195beafee40e99f35f957ce51379287577a9a4fe7d4d63f0dd8b489165b4cab360201739556f33414a7523bb2d205d3287f4c4ce40eb7b51b4ea9c90a41283e472e643871ad7ba11a0c4c59245aa690260adfb');
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'variables', 'production', 6, 1795352765085, 'ann@example.com', '{"added":["EMPTY"],"changed":[],"deleted":[]}', '\x234c1d22ee2bf710f74375c57c5a707a4297baaa342663f1336cfc20b5ed67fc', 2, '\xa8a724b9bd4ea03d1feecc4429ed649aa5e794dae6dd15da7a8352d97ca80b2a', '[{"key":"DATABASE_URL","updatedAt":1795352764293,"version":3},{"key":"EMPTY","updatedAt":1795352765085,"version":6},{"key":"GREETING","updatedAt":1795352764555,"version":4},{"key":"STRIPE_KEY","updatedAt":1795352764833,"rotateBy":"2027-02-20","version":5}]', '\x010100000002aea08a1f21f666ba726df4374f183d02945e9aa98f270f83ecb961e9cf4da37bcf08c8a2ef1323a1c11679debc224e0cc59538480b9b09dbcee093f9a73a610ad941021d4136633d9a8565935e9b3deea0d81d703acdb65a8f522f1f145564b09a5c3a3616b64d31af53b26fe8c4b2452dd12808e08b6fc639c549c7731e5e26d1b773935de152d1806e8a59ed6c3685d4e5c0a3faeaf2db6b69fd0c664691b2dda32e3d2731780d8f32af2f128523f5af1eb7c74d90488eeb1f49e7a5da37fbc0980a9d0b9e6a2fb600f96c9d846c45d96b14ee31018586ff8b26c90f0b7d9f98feab9785d5c90722b7f0a731c423f45a8565a71e02604d50e9e53ce75863f79432dd61e36b759f77d2ef300e9d327763d24ec1f8e1aa60c97b5228110a70c67d8c7db4017abdc1daa86e9690cf0fc60b8480759a579ee9600ea678e5af349fb4e661b53fdfb094a2fe7ae275a63be0852b1ff7459e524fa6661fba9f8deb3bc9954e');
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'variables', 'production', 7, 1795352765556, 'ann@example.com', '{"added":["LONG"],"changed":[],"deleted":[]}', '\x002d99c46f22c94f798f7c12863b35645b7c73dd2f85945605fe88edaa1b30ef', 2, '\xbd188dd0dc2a8aa0c1a46867d7cf5dd66565def3d8e7de8c69a96574b543f984', '[{"key":"DATABASE_URL","updatedAt":1795352764293,"version":3},{"key":"EMPTY","updatedAt":1795352765085,"version":6},{"key":"GREETING","updatedAt":1795352764555,"version":4},{"key":"LONG","updatedAt":1795352765556,"version":7},{"key":"STRIPE_KEY","updatedAt":1795352764833,"rotateBy":"2027-02-20","version":5}]', '\x0101000000023e553fe0d3dee9448b4f44d32b586615db905b23c286f723751376ac33a42cc1c503328d951e9af1a0594a78cdc0c51af7142d7ea27af2b08a2a180f52ea920991a7481443ac66d2e2b901eb763b20a267b15b97f72296e8b619b1d7c00c8f0b0f2b469cf0482bac5864521412b8a159817d8144249f236573a175a8224ca1c5db26995b7ac376d01fbf474d7e63505e15c3447db16da914e126112d927a6609569c17065b550133ee4c2e32fc4e0d862cca54de5646e9a519eafcc0ce4edf6cc4f3494266bcd3db8c48ad82d8bef626adc53f4b63780dac46a551fa8160228ff2905a18d4bf3fd406ea0680a0ce67b6cd6992458285b0e3bab83546a82e8a1cf5f3acb15ae0306d41754c1a3b986bd440a1959337be929676c59358ab0ee4ef09116da065a2744eb24d6d6383bdddf8f7fa3081c5d72961a1bf6385eddaf2168d6cee1d36f8e0f7f8b9c397ec575df2cb2e81e09da99810af8a4e5c01f31231cc8b10ccc76199fbd6111b0052d83cb1c698759ae4541e850897f3f3636a314422d4de5e74ed46749c4e6d4d8324fbecd940f6421b25384d4f6e873a5a17939ea60e18a67e7504b0096c4c8d3f1ea82c9178910f2050f627fdac5fe74eba81d2639b78ce15e2d7e2023a10795d32f990265c10c29ca5b27cf1cc30c9775d8faabcf67419a86e4253bbc62b4ab2b7e35c13caa77137a9d040929e613df2a58cc0dc3ffda681529498e549e4892c78f1f47d26166f04715944fb66b2aa9604680c3b3deac0241ff0069c2eb9d0f04f234803bb31455f059517ad2f29078d4ad4be47f643fa1557ce1800819b4f3676708e3ee5fe765e664fca3e9b2e101f85a32c9656b9964aeac33e3623736c2fc8c76a72243d7ce01aecfb8ecce9c1e2105344922f4cb0fb107400a0db0b60040e0b094f91ca2b2a5f9820f72daccbf91d89fa29a305b7359729b11a93c950e55e99e5d4262f32a90e4a4909b2df15a566a90bf76fdfb03ee4d46e7162a374b6700138982a102d53bc19928ac952abed1bafdf530a9035026357901c65c211a16ae9ff87cdac2f38667f5c0520ea12015d9996645de18642ff9fc8a82c811b9ece458280f98b6d749940b6d0f9979afa814b91834131630ad0fce3b5e4ada02d1f8ca4cf4eb0182f4d7de11ff01c714a9a761307767954bed0f144563f52302356c62c987c8d226b2f507e5cf55d10408246836da4f9bc5563cb3f4bb612ff15d8543653201c9f3bda93f978a88d35e18c28ed70354269c5f099d26d5e16290e5aba23c400f1f31521da5c6f14782be8746ee08fce9769de825667a28a679813fe363930bc1bb559a4c2c37bc22c22728353357d35d280bd826c44af1a26a28398461b0204afcd311b9905fde216b12702c38c1642475039fff699082ebbe0e1a7f3bdae587235b83e00f6d51487aa7a2517f7cd245ee2539b8529c05eb065fd376b65bbcbebf617506bee3b69ba408c98adaab95c15259f44d16fde2a890c9353bef7679af4bdcab8fbcaf3cea90af64cfa7ef56fb3879c60848943eaf1bcd58535e1689a9ed65de4d6e6084ec9d611900c9a1cd5db6d49ad665dbdee28ea9f78b896bf0b69d0c8a14c4be8459d30b34de9abba3b6e7dafd1aef14d86ac0b9a6bceccdd0bf920019d1bccd19f8e0985874aec8c1926c22dc65ac481bd5f1ee0ad6b39d651a111e76deb0e9f2fc54b8eaa6de9718c9ff99d20c5104c9196a0c022c25e3390720fdf8887e1c70b354f5bcda711776f042b5f2a222395ceaebc7a942e88dc13119ae387a6f735f70bd290f7ce12ff70b9166e593a5805aa179602f7068b6e390eea7f22d5c572475c3577596bd969ea8be5a233a2f659845977448df03e5fd99efc419dfcfa046529a3cede4ba924e7837c96e6a94f546b668bb14d04f8b9a24fbcba3db59668bd1963b8f08863812338f867f6effc1c3f652dcc75adf93d51079b28e662d86a2e40e6aecf83314995982ce0feaa47587b462747aad7c4593bda09bdd047563ff41249bee4550f23f2570e6ea1dfa51cb6f8602d06eb1d1368a6c42af51e0f3892f8051c02a6b4b6269a42a923d415db0654e0f0c030ff97f88bba503d1ff9ea5e622843cdb82c870fa5c6f96e44977a56c7f9a4d32a263558e6214ed7f74fc5e2da186d1fd19eb670f2c9441d6a49f57cdab75b6ef62531a87d0db741c8b20c16bd6088eeb03800914b2ac55360a134d2436c92d4dce7b2182381be27483634f28b251eb6562bf2a7dff4ab4d4c48f7fef2ec285fb47c684b02b65c35bb9711c2a4490470c0655000ff79dbe3fe775d86a8ebee143c3f5d2e77a6c67b780dbee6b9b03026dadec6455697f4de3ce2b60f30c417a75e9d53e24f29904c8528b3d03ae43aafef15daf1e2918baa43a2652a16b2bf8b32af5a5ec2e1aa590377d0749444eecee32cbdec4c25d68812e0eb80272de9295d733fe59335a59f8031a4da2855048924a3457a8c130ba4a9efaf7f0ff4ee968592eb4724b9b53a46e773e045990e656d61b4a8ce24306861af2464bd76b8a3e68bc5620f12c9b4c6f6f022f51986704bc02a19fb9c9ed99022e0fef844918c0122a60ea98524ae2c96eb9f6d1bc8fe6946dea7d5250a6eea89b5086d3dce7cb62ab8117739e47a99f2ccf49375eb04240e3468433e4592495910fb90e2d50b8c7c9ca21a4062cee7ea484c295e471b328b12296984b797f926f4e7b9d0cf694c55bc2a9318bb622f04c8d718b05e0982e2090f09fa2723d0f60f139a0ef3f901480334cd6de71210489c15e17cffd21555b399e2a5c5658c53254b7ddc0b557b583dcea718213577aa4b3272ff7dab2f615236cd2797c77004956d3cead71db15ee10a5c053093d1f4615bd892e7e9b62745dc9383e5cadcb211d5e1d970aef41350a19266b9fd59de2031d0542a83caefab07f2d4a85dc9a106d7b4332995931de55ca85586c10e4b17a7790a5664fd01fb7510d171baeb226cb9e8ae6d92a3039e77a654eca8b23e3aade9d4d9fc45c1f70a190144886317e81e61cd8f635d82399eb7bb792ff427a930582da0e470a153b2785fe9eefec5f6973fd2e4815235b994891755689dec85677a8e72946e4e4dc497ce68195a87ff102df53c509f788c7c5e7f75b1b669cf25d70cb51318e5616ef755f5c30661b849bb641cf5ce7457536141324ce8e1fe27489ed710af0f36ce4acdec9ea246699cedaa275583884d210bbd93e5995cc0124b7eec171f04386984959e3bbbc3e3dd75d1958adc7f03757bde65198e5fa38d5d52ceca4944b93f4f2d15dfa8afa97c4994ec14484810542531eb873e14cca1ef1b4e6f64216a510909fc15860f9fd6f30cff94c28be7108202bf67139daa77c99388ee9c5bb5c661d044f0f353d65c7da177641dd8be796c0881caa05583db1b2ce4f6f1d769d6e7c68bf911e82e5f6cdb9bfb9035bae55462a693957e94701045be74b0a7df1a1dcaa78401baacd1c53bd1363a77040b04e484957ee3562ae970d00ef20bf5770a49dc4e2112da11412d25e48c4b5a077b0e6804b65624a9aa0f3ccc64c6c060365ed4531a2c73fbf76f2b6cec6f2f104d68510cf7b6f7d0928a5cc86d9f510dbc3ae0f9ef728ced8a54dc66ca414f5557566c93cec9771a5ba170498c7469960b8a6a68d56222695aae8e001a5dddc391d1ade93acd29bd98c0a3ca9dba5bccd5003dfd7d7c1d7f30d389bdcccf8b62cc31baa74990e1e92a0a164f7407c0d413598134b733254603211b1303b8d9c69b081f47faad6f162c45fbd2032c44bcce965735969bba561b407bd80e44ad87f0c044b27bc2bb071ae79292165a5b2c1d4ed4a89f7e3a4e50896703f9e59329274c95acc1a7e7a19e1a2d02a94ea4fd61acf79127024c15b05dfb6f747b5bf299b384ea0a99f2cd32f45226772c39f3d1a0f39fe97b0227ff1470867f08759ab9ed6bb81e35df1afa2ac5f1a0670793e4ca6d45d92e567418b507a7f00506e0ba4dcf94a31fb2fa6afc06f150b1c824625b428e67c31ed1b8ba66170beedf0aea201c9dcd065510f21354422c0afaf8aa5567b00a4979c67d22cb049cce7f6ccd394543d37f1938ab2f97ee41');
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'variables', 'production', 8, 1795352765884, 'ann@example.com', '{"added":[],"changed":[],"deleted":["GREETING"]}', '\xc9119ed5877e3f534c85bcc089e2ce6f438f9516cc2e237a823fad12857fe559', 2, '\xfe0bedd58493ca2eb6c18ae8f4330a2eaa28d9f3c5823997fd6e790da1c7246a', '[{"key":"DATABASE_URL","updatedAt":1795352764293,"version":3},{"key":"EMPTY","updatedAt":1795352765085,"version":6},{"key":"LONG","updatedAt":1795352765556,"version":7},{"key":"STRIPE_KEY","updatedAt":1795352764833,"rotateBy":"2027-02-20","version":5}]', '\x010100000002b96236f784e1be879b0aefb3881d31e9221f9be79072259626f620728cbcaced741d3517a8bbb0b8ad3528ea393bf1e4c3a801384ccd140c1c44a83e1821bb12dd54b3b33e4aa166d9da87bc61a30581f2aa821279d6ba324a184ce84158e47f60c075d62989042d4bd87147c6d0fd43650e23c58adad6748d4b820f6a43e8073fab49b8306fbe1733c2e6a4d436d97089cfd3e9e1433daf7a0f6d44db8790d3c0cf4a6ee710d40d7ff48fb684b734f4d8f43274fcbf3f228eb8108235baa75aa5c0956c031c133d121f3f969e8db4c424bacbd7ca8c146cc85deff22cd1e0cf5d7645da0630971f3d6020833f07b8f02f8d134feaf1ebec64195a4b4ae94790a31d956e3fd3c7f6d7d54262da045da3628fcfd84121763e6faa5d19dc0698bbf8515ef85d82b83fb176e1a4356cbae9e62e938a556dcf89ea80ca796710474178ced634911b452eef9b79621ce4bc8775cafa7c494d052eb48045ee7f6a2a57fd12c1f182e42ee21b3c20b20231560597f81e4cda779866111689ca9f44ad28cf6dad33ff1458549e625f956921d8c0f4a41ee2c36d9896d67ef7db3e0ab5bc2d4906d4fe807372b97a865849f4624f56630cd1e449af8ebc8daabc97c8f472c27b1b6405785c7b385d6bbaec7adaae6a1222e5d035225dce352ef8b5193071eb76a405bd164eec3bf4d09b78f88e7caa772ff065cbcf52993e2c09e4ae12d431ffd002c5ff662a293485525d826509d0fff028609004f1535af75472cf353aba59dc442052183316d57b641610860e0b81293065203c739f345080a2053f4b24db5916c01db0c173e3c64f6854a6b09195eb3ce66406c98d102a9b495c78d84f4519e08cadc18ca38dfd4316ba104ec2a2cc8a7f4d9c2552d5911e73711ffde1a136ebb16265ebe14081716379be074a2f2604de5a408fd3122790a9413ef5c3618e94c73a84ac4753c5e9bc657eb29808e4b1b6ab56932025277f07e4b8d00ec11919a3923863e079bbc71b9870b086fda1badf7242702817629c87b47e9632c482a1e980a9abf81b890eabe1fb959ed8899d1dc190b9c2ab65fb2c7e2ede7c914365cfb5cdce856e00220eeace86c4a7d3c630c63cd4344f73e1639ab221313b130a472b97e1d6dd3341dd734a47a4aef75e2fed4ef780d75ba50af95a6a3f1c2279be0e81b95d748106785341fa34c8d14d433e7eae70c4446808fd291c56b59c8bd7e60b6976a3581a08d1f301f968b14552c76056f26e336e4f61e95b7033007ef423b1c1c7d3afbcf5db0f9b84c1c73faba5a032f6249cdb8e0a6470e0903e6fdfc8b319f92ed938311a5494a40a229133d05ab07de2beef3d9990b86c2503a74ad014e6a074a73705c9857cf129e1320cf3e15d6329360e0f7497fa1b555f6591853c4d3611f46e03f08ddd801e12cbf766829be00f3efb55cbd9f4f0a39812f02aaa009572a220d216d82c5caf3cd99b0a0f659685bd674c51ee0899df91c6b9f6d2177eefef2325bf034c1d0c8c73bac30a966c8c4bbba7a27f66a52e277338d20e3bf88a5311743cc9713fd8c7a9bd59495fe39a9ec98b0ca7f40bcace74190c07fc242c6000469b3ab6c8bae998f4ca5c77c09fc8d2f0b8bf093f70407af3d97b079fb5feb86079d7b75aff505eac04d7e091e618208c7c2fffc0bd8db57930ec5920a429bc1906196f880d01f6641dd27c7d4546b37b4ea233d74f847b842adfffb0d72de4eebfc9e568358d85b4258850cacfaac50cc0e72e38a05855a309ee13e655acec159aa766bdfb3e41d3e6092c15911cdc5f9a0a6d1ae77592bac1cb0b642d76399858bc87d02dba8fad6810b31d9c2c6e622e78ca3ec2f1bbaa7e8711b619b9912ac3f91d57814bca357171a853f5c1c1ac5777fb57ac4d1b36a0e9487149f90a209eac40355b94b8a3462c24361a2a4ee86a0c0115a20190953e243a6804e64c67d18cf27b8b6ca460b66c79c23d5c7eb59366fa951f7b547734aac426cc69b30ff31408e632fc9c1c142cb46e8278a8fafdbf992b77beb3d1889e534e6e4e29f1e011951319a1a05f582ab93d83f5303729ddfb5cb34adec5f621cb5d122dedc74700101d4bf12db2e1511721231c90b2c7c6efb5071559949aa7eb84c96c9dcb2f60a37165cba905035c0f20c66f45710107f71b7c69af07351e169b1e4caef6ef8a3183c9ba32a249ad294b35d0d4f12e420630cc4e9a27fb2066082e5116de5f48b1c0b83a9b23988033266f7004dc8ff649b418dff28ddbfab4adbb559506a04951452542475cd03b6e64938c7f708dcdcf77aada3e930685ad92cd5da46e5021cb527cf3d6b255776e56e66c214de74c6eb27fcefc970a5a15bedc63931ef2742d2f662e89430bbd977d5e230c7ceef16351e638c1e1e17c5f1945e38eba4ad50d0844b53ae072f4ec7adee483985f099cf70d25ba51ad9ba049f6d35a87934f173368619b57fad180db42d2ff877750b769bd70931c7768484e77fc1a25acc79d269481c8837a659037c2255bc82aadc707db4e3fb5d24ee5966fd01228589e95e41d19f32233c27141c459938dd2cf2abf841b5db6cdb27ef2afd1e20dea789f6e9da2c32347afd53deeebcf34282106865e94524416c43e22ef517bd8352037206e29041fbd0f7e1506c983ce0d089b5cad74f46ca7eaccf873533bc470f244084520aade1ee2d0918f00e55287b47c74263090208110f75835aa5d75163c95ebddf6206357b6f3d1e6125c347174699fa7d153110440938975a2bb17932d98d910bc09bdfc9fbea4e5ba5f45b0335dafe1da027d2901c8da46d59191246dfc934cf81f99c10ad4e2cf6848dfb29be47cbfcbea43313d1d4577ad48727d6ae5a766e4760b31c4264232259e9ec6d7d5cb3f4b2eb2ef7789b2351fc0ace4c6475b06b0a181ca3d7042907bf27c9e4d2129e4ddd01484ee400ad14016811822d662ac15ac2923f14b83d7403845b47352e6a4ddeeb6e7f588077ff04c2234c14ada0845894cb3cf4f9756d4fbb08c61e8df24de3c4b19fb6a4984e54ebf0584a06a92e2aa4dd6c517a213171654c5d50f9ad2954f5f681e62698054cf1ecf944e43b1a9ca78e9ca32c767f05a74b1e5c331eae458b2f6d1076ee66427a59b6fdb161e10bbfa177258cebb6fbc6cd56ac6cb5e76a758ea8bb95435599a0da03690a14c2ad374af3971bd65af0af578518e26e0c5b12a41aa90e48437ba891e3017272dff561706814e6993c76b427d03d3ec49af2230f417e1f12cabfbf9c6fda418d0b868a0c04ecec3127282d2bae08ab2d87c68e4a1f53c71b8157fe69b29f47c0d03e9a00def73b0b46e22fa14c33e0ec8977d23076f5538ce42590034c7996d392bd2fd58a0112cd6b22c799174b912f1434eeb393014b55b3792b9aff9df785e3ffba75ac0605d9a7b43eaf515e498a0f9004fe7888db667d7194313979fecf0389984bc7e8b40172473cb5571253bbc517298465ed4892815994fa7a36dc28ab7863af401f015b3a95a1a14cb1a153d98627f29143f6f85aa71df4ef827e2a39ee1277c1be050fc41249e0e067baef178522bb3e474625ef79bd22a48b1d2f7f28e304c887de5890387f94e7ee6cac1f07b9528b83ab745237a3b6919d93ab50cb52165087320dd161d516e97d197c686c784dca709e76dc6fcab4d9bc624190760cd0e633358aa20c76d4a64293774bfd536e0974e7e3e9e4464e52b3362cc6a3f3124e636005d210211f6f31279e34ce152a7e00c06896ec5700805090514202bc16d7bc81e196dd80e6632b2c1aab1ae12286f446977244cf410ccf4639b75783f8157beaf49699a94b519f02d617c14d3af7f535d33cac7cff68a190aca8b51e10e199436f8b6703d610edf27b47d8bd2048e1dc4f66d1f73cc45ce357a0d4a95369d5b16d14e4ade1e499fa6e5eac7540ae727fa6efcec1b0c0277a5ffb5253e8c04c0bfbf8f8173f8817d731c');
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'variables', 'production', 9, 1795352766130, 'ann@example.com', '{"added":["GREETING"],"changed":[],"deleted":[]}', '\x4983e3249a8846efc7673d8d253e74d9d51ebaaf95e3ab8b7d228c7bbe31921d', 2, '\xd7ac6b02b0580d443cf545a651e75a6a2673fcef30fd80f979920d8decc06005', '[{"key":"DATABASE_URL","updatedAt":1795352764293,"version":3},{"key":"EMPTY","updatedAt":1795352765085,"version":6},{"key":"GREETING","updatedAt":1795352766130,"version":9},{"key":"LONG","updatedAt":1795352765556,"version":7},{"key":"STRIPE_KEY","updatedAt":1795352764833,"rotateBy":"2027-02-20","version":5}]', '\x010100000002971b7762508e325b61ce9e0da3e55a0cd11e34dfa0a73dc9a5752c43fe9320775a133e010b18ea1b57b36c3c8b1559201b8bde38b05f59bc9addf94ab8de979d7bc772158dc072f1ead4274ab84caa41801d2631f62f057c70d14ab43c6d4a9ff82e5255d69b54eab1edb6d04ec8fe4ff2f30951013de4a0474e68514e0a829d1cf9936ba375025d3e70d0a2db6f15151e6416cc661b03755002a3d4251af0ad845e30751ebab715d5dd52ae655a3186da1dbdec0aecb31adb5e421670e9e23efe07308293b67e82e8dddfc011797bac249cda5fa4f506151ed29c571808aa50a4075b13523adfe666a852793be22fadd1b320b6933322b0df104f2abe66f8929a1b4bd9d2bd3a495f292f66f788ad3cdaacd5f7d2e9cf96f26fd374eb18a9bd275edceb3246fc4b29c73ad15e0f9c45ee01146972398b1817d4def79b36ec8fdb0c494bd4c36cb7bba2ac2a6e36d0cfb7bb0e0d3a06d06d1ba238b48317649c2d615b46afc4753a5774d041c86c5fc33660b859bb96fb6df43dffda81517ea14ab32d8441f44a42dca947ee023e85bf8c859cee527f6d7792c91113d6584917d38a49cec87a52a76287e5483531fb1a35e4f1ad0de0ce9fc8a811c86654e94040c3dd2ff8afb6daf048d7c17ed44a2ce444bbcddbe364b3706df2a8fe8d57d48789a81f20728b9b61e0dd1d73e36bb5e5421175db8326880f41c45bcb157f235c09e32aba690b6698a7d9aa4f7e279d5265d5590b7dce4e8fe0acfe1f745335b3cc75966f9e0fec7e9819a838aa0b21b9156de3822490b15f5bcd5596bcd2fb0c4177880dcaf3ba59156557d7fcc7318b3fe1996938b0d6ea6b24aec52f64bb5c98399b889e082d1808af5320ba21f978f61d705426e61764e69c3d638726aa2bbd9bb7901e5a8dfa7e27afd1b19804b64f05c7a2607ccbd312e004e2d80f9a89b67330654b205276a0565d039282e7958ced3bd2e5d6fb1f507538f20e13fe755c74eb4b8111f85adb5af7b49b7c07d7ec5bf4c44f0dc00b57993affca97e8faa0577b44359e0b562c51b84a2a78c411bab3a13550aaa7ce2b6c41e51c47dc3d7456d688085c333405885a67cb52e29d946eeaa20efb6a9d1b6aaaddc29901d0dc9f63cc60a513417265f9d0bb2a752dc777d10f183458e1d175bb1ffc1b62d380e0b741b9de47e271cbe0fb84731b28f759cdfe70f0360cbf9d9d146eb353d25e99c61c4b48cef1234ab949e8659ca14f6b9bb86ecd29ab0318e8138ffc8450267c91d5fd2faa3d7bfab394f172448c21023b7ec7fb1053be7fea9fbd21ee09025781c84242edf189fc9d7eb0fd861fabceec1e35c8eebeff17c6e6b3eb712c2e7b0c2aac16e50589881c43a1f4b44bf460ec14ca6141e98451106d42f23003c3e5e15bc28f9b3da7538d2f29ed0eda5ba814214da466df4e1a2427da8ba75b3263b96214146bd5a6bd9449d850e0d258ba7e22b0b63320ebac5417202434d477532047299b72844ca456568743efa771fe6683088ebc2793cb2de95dc529d78ef2e43d97f279c43369645bc86430181557f83af45095d955862632852625b00eb818b8e8cd187cb1fc5e59a621c637bc4666dd444bed921ef822d9ca43f956d71993345b8f9639eca222d52474cbd4bb5306977f301dd59c4ab0845178b2e892cb0e804072df5c5ca822039545a19a53884394ae8485ffedd58756e75318616c86dd75c703956d0c89ad9292c180b2b75c46fffeb4bc9892aeb562a5c6e5ced114ebf027997f63f51b25648a365296ed5454e41e02df4ffa28d18e912574e998378507740ca376349e19b268426c5b58708abfa314c4e7c99f1e90e9369575fd9c3c4f2cef337e19a0fade3de30633f331f4a86f93091587097742cf25e52caec0ec11f410b5da351d96a433f29bb8c587127e85842d225b6147d4deefc26885985e614d806101d7f3b5a49f1679f29230643c2f7ae3f380317b29c2beace63b970a510e41470bc2ecfe5e8e819aaebd3c6fd9778e695b4bca358ab7d5efe4cc36afef79af50d9d8d3432e43af5b3a6ee382605c2c20d98f6731d92f53b0e88f2aa0f8f459017ab4ce0f2984759a9116ef117315419bb19d82c0dd64b587a50da6aa2c26a1fc69c2d3363837021462481f1b6dd463fc521fdbc5cae954d666fe759bc616058d1bad6b5e53d8ac73b0c468c92da7ab6fef1ae9a9d21fdd3fa689fc03bc1d1d3247939f77afa28d1554b58b357e5dea8e1b429e0720bcfda264a42fe7de5b2776e1c6fe6c40cc7f28060f51d9e4e96e587e1c8ddccab42a13a18a7d3e85dea1c199e1c471daa0b9aa95820121db2540e09b19ed4f272a9295940b8ee0e0b70c5a72c67088444782c1e7b0ea0e430aafb633a649be2e1b39ef764170490cdf9cf35a342ab9274e00f217402d2931e1028242c46be3fde4770e6184bd7fd11d84c1fdeba9818574aa3615fa7e5b41d49d8c6c81796763490e9673cd56ac13a18e5d4d2d716ffbbe5246f65ea6dc6aebdea80f0d2724df7f3ca3291968dc11918c13d560c3de35ec0d6abcc2fc65d3065133b1e1cddc77f35fc763a6c89b99f8d679a9a3cc3ba2fb6b6c9e27915e0c56d23e786758dce553843fdf963c1e54bf5f2c107f373bdc9e158035f5c8307ef1ac9e3aac7ea4da2d563c049f32f0595f185bc25e18b4335ad8c60230c25e1d2a5b012a2233491d7de06fda8121ddd7ade7512c9cdeaf5ef89353c3c711e0321c56c8094056e910ef52c112f1f1e3a883fdb032849aed7ab7a968b2a471366eef60475c50f530a48d40e41813940cfbb0a28bb0c5a38bf256ac01e1ae828b8b71333900d37f45e8c5e7080dd4fcc9dbce9f44972c47b0a16fd8270d08664b85cbff9f0e8e3d978a327a3508efd0751e031bccf4fa6c897249e95ea37bd97ea7190bb18d70a11de2f7502a10a8abcdbe55457c61159f25624442527c15382707778ae570bb05bd86f07808fe9a9623cbf885ab6de4d83451429111e2b641d7907b9b1ebd9d48e6cafdd0d55b1084d56ebf0c4ed65622229b6ee34f70540a82bc4ec60ade72073d456cb093737920e3ec958553ee35367754c9cdc2eed6567c2d6500f21341a8f18f457cd4c2cd61d5b117d31a26b84c325d52b916c8725c9b0bd879b8ff650f891aa8b40704a0dd857262537afc170e070a15c299ee8ad3c1a9bcef2837e5ef8612aa41b7627e88740421e0a3905fd9bbc5ef248bca175fd324a801fe00eb349a0f3507bd919147eba31a975a6b9dee4dfb9a5d0daf6d88101ebcc26e51c1758dcacadde09ed478fc13eee5426daa760a9f700154bacf21f6220bdfd333dee80304f95f105d28c7caf699a32b8c8214c091b9d92505302edee2d38b136b3a8fd28799bb8ffdefb47a29acb47c24ec3ca6b24a8f2f1e3a97c05574390dea3b134e1835b8f031607817bda218013da59d05bd4887cbdf32b9f809461fd2f90271388a896c198f00af3fd81e19d0feaae7328a1f85ae4a1383b402e0c91760284ab95d9ac6045b5c1692b076560cabcf3c97b068d6d89983c7b1ee19d151a6615078f847f686deab8463b2ce8e1babd64c8fcc383ce7ac521b9c6ed069d3c740db6cea971e225383503b8c42ebc0b5bc1a7cc172f9c365d87dddd875f50dbe68c9c1cab59b1a5aaca8e9951a2160ab83cd3d35ff86fc6f8a4b2066882518de6d6339d1f54e0908473dd0877774fb577eb02141a7227bb3a852fd536e11dfbba294bc4f106a02a12575b2993c0285f875178d758519092f0c4cb7c10764b5044c106b8ebad3138ab8bc1d76098e82338bd2d0f4cdfb167dc6ba06a3390bf14b769074fb38c424ce67d8cddc2cad4f7d1eef9b0bb73791c32e3c6e8014d6d6b80d191948de8cd4a77ea8040b9e031368af2b258c76e20439d0dd8acc80cbf984b03b9d63688a78796aba8f48cf97a5a71ed9ef58fa04372bb7516f98286d04c8074d030722cbd4796d6c0e40acf94e04ed4d849930459b82628be920b6cdf45ecda8478da57bd7bf640d2354a999a573ef2bc2d223eb3bf281a0eccc2e8afafaba953e4614f56c029c3b829f4c17e3c4bc942a03d74eb174cd6166110b100bd783df5e737ce1');
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'files', 'production', 5, 1795352771568, 'ann@example.com', '{"added":[],"changed":[],"deleted":[".ssh/id_ed25519"]}', '\x99d4f5db67298ee756ae237b866432bf71bbb5aca7e878c572f152d42c34230c', 0, '\x530a502ceeb8e9a1c66e83c4f6a96f0d3e888c6cf8f4ae626b689fb238c36998', '[{"id":"01a2035d-3965-731d-bd2c-3f1f4ca137ef","path":"config/tls.p12","name":"TLS of production","mode":"0600","size":3000,"sha256":"919ac043b6fd030b9894ded12fa0d2291fbfea00c7807bd9c75fb433b71f7675","contentType":"application/octet-stream","updatedAt":1795352770908}]', NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'files', 'production', 6, 1795352772380, 'ann@example.com', '{"added":["after-rotation"],"changed":[],"deleted":[]}', '\x1ff7e2ec7f4ef11e5f23e98f8095e0b6183052a0f6964767f30e6a87c0cf2699', NULL, NULL, NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'variables', 'production', 11, 1795352775154, 'ann@example.com', '{"added":["APPROVED"],"changed":[],"deleted":[]}', '\x6922c42478c3c29334740c72dfda9f7d83473cd900d1af82848a7423c7bb22f9', NULL, NULL, NULL, NULL);


--
-- Data for Name: sets; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.sets VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'files', 'staging', 2, 0, '\x667cdb8848e7fc4656a8dbac2b9988a33dbe89fbb2f45ccb1e085df8b50b0d51', '[{"id":"01a2035d-3844-7423-905b-7acd52d3b314","path":"config/tls.p12","name":"tls.p12","mode":"0400","size":3000,"sha256":"f49a000aeb937be459f9cf5769cfade4e352b54f4890d7d7b7cd12e348df68cf","contentType":"application/x-pkcs12","updatedAt":1795352770621}]', NULL);
INSERT INTO public.sets VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'variables', 'development', 1, 2, '\x988a59354b8b9ea3aa7cdf7a4046092824ca3877265615301e7e4f44fb02c711', '[]', '\x0101000000024eaecc20fbb2f6461f06514a141bd6f913b5da2ec5dac470361876df077c9a8e');
INSERT INTO public.sets VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'variables', 'staging', 4, 2, '\x8371f84a4511177638e20cb5237f3a10040acc36dd12fc92a9a74e42cbe0dbfe', '[{"key":"A","updatedAt":1795352766734,"version":2},{"key":"B","updatedAt":1795352766734,"version":2}]', '\x01010000000267945e48fd97a0108d6e3cacc9c9005b9f79d8cac3974bfe7f5085ca0acceb2bad473eee0f37922f1b374850c8048d5d8a467ede9e94bced43e10b8c70ceead36d09aa2c067fcecf9510608fd581470e741ccb100fe0261c56d3bdb87947200f3d11ad40e11537e8618d5da63ed173e71633047afbefcbf66ba5dbf45aaa736d3206a6eccc06fa1883678e54ca7f00ac6110026257');
INSERT INTO public.sets VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'accounts', 'development', 2, 2, '\xf1aa6ad29d686147f5c48fe9cd2adeb1284c8738185c13c849dcbf17693f3740', '[{"name":"vpn","updatedAt":1795352770328,"version":2}]', '\x010100000002e288ad677290cff74be6b197275404261a44620f9802845669a02e8949ea26cf163895884e8eb355cdec2f34bd9cca0c6003025ebbb3ff4b896cea135ec7c4db83');
INSERT INTO public.sets VALUES ('01a2035d-1af7-7410-8cb1-b43eb79c58d1', 'variables', 'staging', 1, 1, '\x92d854ffc7313dfb0035bf594046916817a6c4aa2273ffaa5be4ecc6ca3d60b9', '[]', '\x010100000001a7abf870c0a72a959068e5f779f78b058df94abebb3a357e4b7f3359c41e662a');
INSERT INTO public.sets VALUES ('01a2035d-1af7-7410-8cb1-b43eb79c58d1', 'variables', 'production', 1, 1, '\x717640ae1edbc0367cbfccec52ae9c1a9370dfb972c70bd18acd551a43b2c729', '[]', '\x0101000000017d0bd8277bf1203796f3d718964a3a18b9ecfd67ee58630a16eacceaad5fc430');
INSERT INTO public.sets VALUES ('01a2035d-1af7-7410-8cb1-b43eb79c58d1', 'accounts', 'development', 1, 1, '\xa7ff59ee2da8eeb4184a0ee7bf257d18a0925ae047b1064697342fe1ae198a97', '[]', '\x010100000001805bb667a0aed568553d779af4d86632371c80780fb042a65cc964b9978f4bb6');
INSERT INTO public.sets VALUES ('01a2035d-1af7-7410-8cb1-b43eb79c58d1', 'accounts', 'staging', 1, 1, '\xd378622e094081f868f8cd5f6d10dca88984ac4fb0b357a934cd229ace9bdd14', '[]', '\x0101000000015d42beba61e39667b0fe6da0e4f1098bb542288034e7df997bc3029240b51943');
INSERT INTO public.sets VALUES ('01a2035d-1af7-7410-8cb1-b43eb79c58d1', 'accounts', 'production', 1, 1, '\xbb04be2bfe2ae884a006bfbe0267867da79b2cda1dc2593a07c8d41a726ef7e4', '[]', '\x010100000001908356669881817e9c5f99a2cea63d41e08a9c69de574fa89300b718b5c91abf');
INSERT INTO public.sets VALUES ('01a2035d-1af7-7410-8cb1-b43eb79c58d1', 'files', 'development', 1, 0, '\x30bc8590bb3ad889be96bfc45f8199b578d75fd1f8d7b54c56982036fbc9a7dd', '[]', NULL);
INSERT INTO public.sets VALUES ('01a2035d-1af7-7410-8cb1-b43eb79c58d1', 'files', 'staging', 1, 0, '\xac86dab993447981c9cbfbf858e8cd22ab84c213feb146911f0b03a126f75439', '[]', NULL);
INSERT INTO public.sets VALUES ('01a2035d-1af7-7410-8cb1-b43eb79c58d1', 'files', 'production', 1, 0, '\x8644a19d9ea57a8a09227cd11b6ae0eaea004d98863e450ae9b4f67b510b89e0', '[]', NULL);
INSERT INTO public.sets VALUES ('01a2035d-1d78-71c3-91ff-73a21cee7b1f', 'variables', 'development', 1, 1, '\x9da3b78c58bdac1f6bf231c659e3e2b08916cd0bb56ff0b18aab27328bccc542', '[]', '\x01010000000132d7dd5c7e28d1c303e117581bec8bbe08143ebceb4871457fe7b885944438cb');
INSERT INTO public.sets VALUES ('01a2035d-1d78-71c3-91ff-73a21cee7b1f', 'variables', 'staging', 1, 1, '\x7cf915721791c4f569c1e15fe0df8fa466ac9896fed109e14bafef65c5844b16', '[]', '\x0101000000015e3364313a74269bb06cef51eba8c82171c5e915511bb8f98065999cd388f64b');
INSERT INTO public.sets VALUES ('01a2035d-1d78-71c3-91ff-73a21cee7b1f', 'accounts', 'development', 1, 1, '\x6ada285644a99bdb005a86ffe4cce97bc9761b7235c6de494e05824cccb7159e', '[]', '\x01010000000186340d0258b04026d42400b25b67565e79728370190e694dbe97ba8d6a33a0c1');
INSERT INTO public.sets VALUES ('01a2035d-1d78-71c3-91ff-73a21cee7b1f', 'accounts', 'staging', 1, 1, '\x611fc73e78e4355b26d1b504aef6f1dea5c72d6a175589437ab93220db3c92d4', '[]', '\x010100000001080cef4b34aefd2d20b4555563e20de61cf6952d150b6d614fdfd0b072a06d72');
INSERT INTO public.sets VALUES ('01a2035d-1d78-71c3-91ff-73a21cee7b1f', 'accounts', 'production', 1, 1, '\xb37ad3b75f8a26d0a2b8ecb08c1aee3fe4904ec219b74ac428fa4ff5a2427625', '[]', '\x0101000000010826b33dc1b515c92081b3babd49874a6c2e6d369bed624a6b15185404ca78c8');
INSERT INTO public.sets VALUES ('01a2035d-1d78-71c3-91ff-73a21cee7b1f', 'files', 'development', 1, 0, '\x9b7cad1274345e6ff3fc638bcb1e358ea846e68fd3bc120505b7dd9cc06a306f', '[]', NULL);
INSERT INTO public.sets VALUES ('01a2035d-1d78-71c3-91ff-73a21cee7b1f', 'files', 'staging', 1, 0, '\x92647034e9c82f1d8d1ba72fa4fcf69478bf17f58c0f6b91ecf2de5dd33bd8e0', '[]', NULL);
INSERT INTO public.sets VALUES ('01a2035d-1d78-71c3-91ff-73a21cee7b1f', 'files', 'production', 1, 0, '\x7f28903e167e647db4db704d1030c0a470a406693875a4ec60da4bdef0848edf', '[]', NULL);
INSERT INTO public.sets VALUES ('01a2035d-1af7-7410-8cb1-b43eb79c58d1', 'variables', 'development', 2, 1, '\x6591672505a11a19cdd527307ad61b5b49b62f4cb7fc22c61087546e0713c78b', '[{"key":"THEME","updatedAt":1795352767819,"version":2}]', '\x0101000000013f5627b09b579290f8fd108077dd2f980e58ee6327baedbaf5bdee595dd8f477dbecca308163f54a91ef1900ee022c1a45887a9a07e5dca801f6d42ce3ea6aee72b0e7a5856d5a1f5db2c25bc64729372e9f734b969dddeb080a40b6');
INSERT INTO public.sets VALUES ('01a2035d-1d78-71c3-91ff-73a21cee7b1f', 'variables', 'production', 2, 1, '\x4a2a9b4d090c4d3c5904e6667fd23db0005c09f99924fdd4e2816b3d2ba716ec', '[{"key":"UNREAD","updatedAt":1795352768134,"version":2}]', '\x0101000000019ebfef6ece467604fb3414ba94e8e98c643f8f38b06b0c5ea6e22e4c738b5f6d14a549b17926b23bfc09a88bb80ec9c5d237bd8c1dff568ea4d2163c9c4e0c7e7e61bf67b9987ad028a77e184810f0ce43d9376d49aaa4c5a4da82266db0a5');
INSERT INTO public.sets VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'files', 'development', 2, 0, '\xb9d68ac68545cfe69a63cb8a8e55cd5cd5dbf40bf3470c98775e5d352b9c4a20', '[{"id":"01a2035d-3a3c-77fd-b108-60d650e45b7b","path":"empty","name":"empty","mode":"0600","size":0,"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","contentType":"application/octet-stream","updatedAt":1795352771127}]', NULL);
INSERT INTO public.sets VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'accounts', 'staging', 3, 2, '\xe903ec3936b30c068d9790a2c3028e05070a65de44d98c6bdaf5c89cce81429b', '[]', '\x0101000000022bb6454047f322f62a705a5635a86c7640281d95662a3d1e2bf90f9d6a3d11f1');
INSERT INTO public.sets VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'accounts', 'production', 5, 2, '\x34581620eb5d04ae1e4e329d1a1d1a7fd900e5375de65a76a7195f3b9ba1c45c', '[{"name":"mail","updatedAt":1795352769101,"version":3}]', '\x010100000002fade9b223c00801eed456ce3c0ab6b68eecb0b7ed96fdedaccf8b3b2361f2600d2f4aabff148f5722ec6b998ebe9908dfa3e103dff7e00cba9affeef17aedcc5bdb748e841241293cdeced7c81528184eb01909fe8d523bf9f5eada752642ee5ba');
INSERT INTO public.sets VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'files', 'production', 6, 0, '\x6380cf0cb560a7f38ce77eed79a7978c456a8e8533eb6027c6c765a0d23d6ea2', '[{"id":"01a2035d-3f23-75b7-b466-27c94c44d6a9","path":"after-rotation","name":"after-rotation","mode":"0600","size":25,"sha256":"d2e63a860162d6249983e4917f19f08ebd51509bacbb006474cf85f436dc5ab1","contentType":"application/octet-stream","updatedAt":1795352772380},{"id":"01a2035d-3965-731d-bd2c-3f1f4ca137ef","path":"config/tls.p12","name":"TLS of production","mode":"0600","size":3000,"sha256":"919ac043b6fd030b9894ded12fa0d2291fbfea00c7807bd9c75fb433b71f7675","contentType":"application/octet-stream","updatedAt":1795352770908}]', NULL);
INSERT INTO public.sets VALUES ('01a2035d-03ac-7137-97ac-5eacb6576574', 'variables', 'production', 11, 2, '\xa70dea3bf2c235ebfec4395c09668a7f2bdbe89cf071072aff340da7f482ec6f', '[{"key":"APPROVED","updatedAt":1795352775154,"version":11},{"key":"DATABASE_URL","updatedAt":1795352766460,"version":10},{"key":"EMPTY","updatedAt":1795352765085,"version":6},{"key":"GREETING","updatedAt":1795352766130,"version":9},{"key":"LONG","updatedAt":1795352765556,"version":7},{"key":"STRIPE_KEY","updatedAt":1795352764833,"rotateBy":"2027-02-20","version":5}]', '\x01010000000273bfeda2e1ad041433e0b801ebc0da6ec73d0d64c769574cd0469d5074e2a1075d715df143d8b21aaa82e4d364e4c3349786d5b9a3eabc7a680ddade2257c64c8856f09cdae20b158c38b35097868a74f1018bcc2ed59e4cf2bf48ce47d848b21c1607ea20c60f6de57e6d393bdc19c03a96d16259ee89ae011340d37e1bfad1c5c75a4a36de1f95ebcccbe3264d6cd5cb4500cfc6d773c94fdab788bfa88daad9763d39e3878d3361eed4704c4eb8dbcbf73fbe060fdf9e11a1ffefa3c68eebe55efc1dffbf5c648da2576a72a529fff9198e942718b0ddb580a50764d12f574d8402f6bc2c00821741cd3c282ac58b119bea5ee60ca79542a070fca693ce74744174d5d45a8f952c8cfb0376335a3a708e6956110182ab96dc7b3f3f1008888ae2aa50b26dad21f0bbe54368026f9d35493cea89509678ebb536c7bebe3f0bd420e65c000b3e19d3d03f50d3d86e29e5be201677b3b51f38b0442bfe8672f743f596ec8eeabe865725aeb98504191e0b3281ffd408cefb9ab5b4731ae1d9f1dfdf7bdf2eb41ea613f432e8c55bc9066f1c67d9a630b92132063872074671369d9938c0b3140073313d63fbddcc9302ef1b0fd0c088f294a1a1549e3e475faba32012ded0afa15703fd7bb30db8e21ec1fccd4eb1db23b5ce886aec6a2ea16bb3c569b4169148082dd127ef8b8c889b0a4aa5d20c2f6a28e6bc5099dcd36179e59f5bb968666dfc5dfea0c59650ab2ef77ced3feb29c8d0ac3a7f64e0baee0e45f6335119ad6a77f96bd817179f96c12cfdf2e2757e79184d6a0705d96552385491e3b42cb80001e7395ab42081d4b4a3a1e294aaacb65c0377a273e3946573da4df47b24f4fae1b845df4033f66fa01c2783364b47218d3e41080f62784d98500d29832560a1c818a605f137b49d5df858acd3101838fbaa380788ab82aa283c04cef3e025be56a7121260c4c65ad4e1cd83855d8ded75470a6a4c6073d91b5f6e02b555b49ffd060cb517d31bb690418427e5fdc40765ffce0c37af2cbe8370c3fbf795638b44efe5960e2470088b068f588030f0d0eb61fc2a1efa41085175ccfb2ba7e8f76c9bc6641fd37e055fab04146bfa1100aa11cbb748a247af76300752f573c14a964f6966ffb4384cebbc955783c8ce461b217f74c88b404af917dcf09561d7b5a4c2b451c4e513100a4b5eb8b80f9f3ff257faf168ba2ecc8b75753bf7522f68e5e2583b76f6905e54b7b303eec1a7a7806c2e9d43ef6ea7799777a4cd923b06f6d4240c445251192c4c849bebe110a308729fb6ab4bdef5e0b96bff2c3ea71591d1e9a06b22c26a8770f4f654f5cda2373fbca7e3000e5690f2fd2e310137fe369a2e2e73580271e79cce071a33d267de5c758f8cab809baea39d24f6499c57bdba3f79996ca59bdb8126c537fa77e4b0a52fb8fabb53d1be2c7b8c5944c61aee387b9cba4ec8bd9695146814611777ba49302b8a6b3db155e751f7c4e99d16c0b1131a614b60b194038cdeee2e7704e58d03b23085361f54f61da20412d9ac8ab71dcf9535a01391ae4dd8d6e6fbfa0ee807e5d8e783b3d34439610fc2fc37df2833207b3343177bf8e737d3f0d9feeae297288266bdaf44437afab4705f446198293a3701c2c5d10858359110eee06159b40b5e0b92f14f96271819d37449777f986799606d13dc59f18c8362afdbee468721e0147ad7aa5036e1f8174d6a0c1ae7082c5a0efe0876499f868276c784bad4bdd0493cd8ab04d5c4a4ba4c9e2c55699495ca6df62805dfb4e52e1e09cc87d9634e8aa2562d17d091cfce54041eac9299c911e4e6f3b6a4bbcfac0dc54ddc1201bfc24cb66da887aaa96d44a24c2a8d8e8c30b26167dda34b49baaa169deaa0d6cb5106bd9a3418c6dfd5d9ad24804deb8d07e22032677d9ef8ad3b7b20a13a221637f6d143afccad3f64b2125f533baa52560523af54ff13ec1fa78fd103dbb53e5dfe3015aba3b6d370067a9b2cd6497f24584e93bb0f3ce1cae198ea5664780bc7bd0c3ba57f466a09459872cdcc18383c3319fecb8595debb1ec34f537f13cda60ee19eac43793c7825db7a419b275677e7a1da58bf5f3c44f7a498db4e061f5bcd478d6874c2215572029dfcfef62661c3d6f5627fd28eac2c9133907a332b136bc3f8667fcfc9329da768117a41134e467157f1228751169edd6b6693d4a602328e177094fe6a4b734c611e28b0d99d0b80008e1bda7f321dcdc2083102754d1c43854b4e9abc5cd458fa83d358435ed5e22a6cbbbdcde1d0c46531b78b71bec5e2e48198e16c9f1c97769e8543a95ff0f0ddf820ab7748cf33497a59d218f360c2468c5d8cb3b7e564a8638d16d3720d496990b26a019904c906f4ea2917f72057127fc700e03c9730619a762c3b6634e5c262484708b5089ec55e278d959d1abc52b3abfc0fe11b4e3b8bdc237365369094e0ab36e4dbdaa3c70d41c84f24bcc83e1cd3af7bda5f9a17849b63bbbb26a4958f098195ba0cc1366b51e2a2c1c211e0468944287c24993ec9f04a84f6b1d9ce24998e079034ce25ee82c9d167b1c8e9199043c1a8674b65973814324e35ad4b938fb085cb00e566e02b4d930b7297adff0124b7c037ef45cc612e3b379a65a76287aa9ed7a988ca9f1ea5a3c19bca76ce00c46396b6692f497364118305e14402cbd4a645b45f60127733dc08ae7d09068081e53ee4395b76e8f216f7f5be6586824485694a82dc20e7c17c30f0904374aafd6e7d460d6c19ac27d57c1be059f0a3390d5948417c280fb55b621f49ad06da986b7ab707f6b4e9f8be95c362338dc3ed21853d34d9995a9348ffe0497de9016b2c6391cb28c9c5b978e11321a73a800aa3574b478451e6f47addb8e3b01c554f5464bacbc2d4ad55d16d8205e14e5ce59d201bc043a5de37f561cddc783e6860efe111079162b9ea83a516f7dad40692bd0098885e686b0c05edf90fe9784e4add0ba126613ef852059167405228a44086c9dfc4aba94d7210da1e68197b04e7c5ae695b1e6d2480a056126f0d31cb97dc2a78cdfebce42ac78472e52fb2f16bb1c980ec54242027330385faa37b38741e4e43098762d4ee9adface9315053d3da172fd4c5c90973437b01207c2d17a24cfc129b6f83547f0b99635a8a49b63b33bd4e905b553bfbc7468a9f44cbd026c9e4f11018355dddcc4d69cae57fb94effb2b64e27c29278dc1ffdffdbe11896160bc8c7c4a81cea65e41d7801d40f6f2ee2324a8519ce9820d9b5005b721f5bb44df9cb4c1f97588755c1bc7809f1ed0caef76f855d24bb9a040a449c24513a3ffb6a1878e9cb414740a87d1b09ff50f0201dd919252091a4c1c6bbc892e2e6c1217d13f69541f10d0780e8eda821ccdb5eff1384a6c6a64110346706c6292e2d16204672fba27102d3a2c9b838a1e095350d82662c75de0a8ccd610ee92d2de296289155793f6a194d94ab472af7408ad850f5d121af31248db1588f12c5dd9bdf9e9a7e74ec2aea13e08c4967ccbff52221eff3a64d1a5b6fbd2a84b4e1753d3768883003b8563bc6e2910af0d3006309b9dcf85fc583fe64d95fc45d0d68d605af09a38692ec0eb17bbd8c4123461c6f51c8a57dde80baf43dc3519ee72df714b0a0e1a38f6870ec75b3ddfd254cf13a1854c08a40b00751f638d05e41d0f49fe32ff44ae3cbe2ecc017b70afd4096dc20a0e953f92579d0a646913f20377e9d44b23d93757cb45ffc3d04fa03bfec937e0e90d051c8cc10949a832ddd132412fa783aa98b25d9deb0535719a01946b89a5bb57aec4c9a49cebcb0ebc627313fe0524aa90b58a85a285b5962697412617117982a6ca53d0b7c619cdebbf1183ecd4320485ca9e7f962687198cbad36402258c250e31ec4b0d9582cb2bcaffd2622c9191cdc9297f02b3ca264f7e0f861827fe8a44757cf0be9bce7c62d9434f4350f32f938eb90fda18b6a0d97edd55a1f2318d25193cd13fdb5255a772fb22d5dd24d06486e589d0c44588ecf7afc57248316f2ee31ee4d5203d5b5251b9efeb6e41640646969cd996ade827e62b25fdd4dd87ad19c98f78deba90864e9c10d23fedd833b02d2828bc247569acdcd985ed86caf27c6ece83f974b47b46d967c49817553996088ed85c11b9c89101e2399f7d7a236b4b6b31d045bc219815fa6c9e41f805524aba536d96560995678cfce70a87362476d6e');


--
-- Data for Name: system_keys; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.system_keys VALUES ('audit', 'ace211b254615979', '\x0101000000006423f5998d8b18189b42f9bfa00af301865ae6d54b6d805454ffc6795229ba861c299490cc93e2212d9a12a0857cbe872ab44252cba8a32994375be1', 1708952756129);
INSERT INTO public.system_keys VALUES ('grant', 'ace211b254615979', '\x01010000000083e76cd0c7ea5a780bb2d94adb429796b571bbf519749ac16b4895826732131acc16497c8371561d5edffb9af5de202f8fff7b2c8aa8822d981f0938', 1708952756129);
INSERT INTO public.system_keys VALUES ('listing', 'ace211b254615979', '\x010100000000aa26777c954a5a57fac9028e512c51a500b839f0d049014e8679e7753dda18ca3d0561379058ef8a0983eb6151b4dcd37aaa518c73e65b2a33af2060', 1708952756129);
INSERT INTO public.system_keys VALUES ('pepper', 'ace211b254615979', '\x0101000000006852b0d94ec86cd3302c8625cd5ea46b6803304f528ecde32266022d700ae11e490088b5e3027f901047cbe9e39f469af6ab3f4e5c65aaaba6eb0e85', 1708952756129);


--
-- Data for Name: variable_requests; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.variable_requests VALUES ('01a2035d-4912-77af-873e-b21d0280c9ae', '01a2035c-ffbb-7601-b764-01cc4a1de5a5', '01a2035d-03ac-7137-97ac-5eacb6576574', 'production', 'APPROVED', 'The build needs APPROVED.', '01a2035d-402b-7605-8bf4-23e71517a8ed', 1, 'approved', 1795352774952, 1795957574952, 1795352775179, 'ann@example.com', NULL);
INSERT INTO public.variable_requests VALUES ('01a2035d-4a30-7785-820c-1ef13f767964', '01a2035c-ffbb-7601-b764-01cc4a1de5a5', '01a2035d-03ac-7137-97ac-5eacb6576574', 'production', 'REJECTED', 'The build needs REJECTED.', '01a2035d-402b-7605-8bf4-23e71517a8ed', 2, 'rejected', 1795352775220, 1795957575220, 1795352775393, 'ann@example.com', 'It has another name.');
INSERT INTO public.variable_requests VALUES ('01a2035d-4b06-762a-a0c1-2782554a4506', '01a2035c-ffbb-7601-b764-01cc4a1de5a5', '01a2035d-03ac-7137-97ac-5eacb6576574', 'production', 'LEFT', 'The build needs LEFT.', '01a2035d-402b-7605-8bf4-23e71517a8ed', 3, 'pending', 1795352775431, 1795957575431, NULL, NULL, NULL);


--
-- Name: __drizzle_migrations_id_seq; Type: SEQUENCE SET; Schema: drizzle; Owner: -
--

SELECT pg_catalog.setval('drizzle.__drizzle_migrations_id_seq', 1, true);


--
-- Name: __drizzle_migrations __drizzle_migrations_pkey; Type: CONSTRAINT; Schema: drizzle; Owner: -
--

ALTER TABLE ONLY drizzle.__drizzle_migrations
    ADD CONSTRAINT __drizzle_migrations_pkey PRIMARY KEY (id);


--
-- Name: api_keys api_keys_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);


--
-- Name: audit_checkpoints audit_checkpoints_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_checkpoints
    ADD CONSTRAINT audit_checkpoints_pkey PRIMARY KEY (lane);


--
-- Name: audit_heads audit_heads_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_heads
    ADD CONSTRAINT audit_heads_pkey PRIMARY KEY (lane);


--
-- Name: audit_segments audit_segments_lane_first_seq_at_pk; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments
    ADD CONSTRAINT audit_segments_lane_first_seq_at_pk PRIMARY KEY (lane, first_seq, at);


--
-- Name: audit_segments_2026_11 audit_segments_2026_11_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments_2026_11
    ADD CONSTRAINT audit_segments_2026_11_pkey PRIMARY KEY (lane, first_seq, at);


--
-- Name: audit_segments_2026_12 audit_segments_2026_12_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments_2026_12
    ADD CONSTRAINT audit_segments_2026_12_pkey PRIMARY KEY (lane, first_seq, at);


--
-- Name: audit_segments_2027_01 audit_segments_2027_01_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments_2027_01
    ADD CONSTRAINT audit_segments_2027_01_pkey PRIMARY KEY (lane, first_seq, at);


--
-- Name: audit_segments_2027_02 audit_segments_2027_02_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments_2027_02
    ADD CONSTRAINT audit_segments_2027_02_pkey PRIMARY KEY (lane, first_seq, at);


--
-- Name: audit_segments_2027_03 audit_segments_2027_03_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments_2027_03
    ADD CONSTRAINT audit_segments_2027_03_pkey PRIMARY KEY (lane, first_seq, at);


--
-- Name: audit_segments_2027_04 audit_segments_2027_04_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments_2027_04
    ADD CONSTRAINT audit_segments_2027_04_pkey PRIMARY KEY (lane, first_seq, at);


--
-- Name: audit_segments_2027_05 audit_segments_2027_05_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments_2027_05
    ADD CONSTRAINT audit_segments_2027_05_pkey PRIMARY KEY (lane, first_seq, at);


--
-- Name: audit_segments_default audit_segments_default_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments_default
    ADD CONSTRAINT audit_segments_default_pkey PRIMARY KEY (lane, first_seq, at);


--
-- Name: data_keys data_keys_project_id_generation_pk; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.data_keys
    ADD CONSTRAINT data_keys_project_id_generation_pk PRIMARY KEY (project_id, generation);


--
-- Name: file_contents file_contents_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.file_contents
    ADD CONSTRAINT file_contents_pkey PRIMARY KEY (id);


--
-- Name: key_uses key_uses_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.key_uses
    ADD CONSTRAINT key_uses_pkey PRIMARY KEY (key_id);


--
-- Name: organizations organizations_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.organizations
    ADD CONSTRAINT organizations_pkey PRIMARY KEY (id);


--
-- Name: projects projects_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.projects
    ADD CONSTRAINT projects_pkey PRIMARY KEY (id);


--
-- Name: set_versions set_versions_project_id_kind_environment_version_pk; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.set_versions
    ADD CONSTRAINT set_versions_project_id_kind_environment_version_pk PRIMARY KEY (project_id, kind, environment, version);


--
-- Name: sets sets_project_id_kind_environment_pk; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.sets
    ADD CONSTRAINT sets_project_id_kind_environment_pk PRIMARY KEY (project_id, kind, environment);


--
-- Name: system_keys system_keys_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.system_keys
    ADD CONSTRAINT system_keys_pkey PRIMARY KEY (purpose);


--
-- Name: variable_requests variable_requests_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.variable_requests
    ADD CONSTRAINT variable_requests_pkey PRIMARY KEY (id);


--
-- Name: api_keys_digest; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX api_keys_digest ON public.api_keys USING btree (digest);


--
-- Name: api_keys_expiry; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX api_keys_expiry ON public.api_keys USING btree (expires_at) WHERE (revoked_at IS NULL);


--
-- Name: api_keys_organization; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX api_keys_organization ON public.api_keys USING btree (organization_id);


--
-- Name: api_keys_trusts; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX api_keys_trusts ON public.api_keys USING btree (id) WHERE (trust IS NOT NULL);


--
-- Name: audit_segments_at; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX audit_segments_at ON ONLY public.audit_segments USING btree (at);


--
-- Name: audit_segments_2026_11_at_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX audit_segments_2026_11_at_idx ON public.audit_segments_2026_11 USING btree (at);


--
-- Name: audit_segments_2026_12_at_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX audit_segments_2026_12_at_idx ON public.audit_segments_2026_12 USING btree (at);


--
-- Name: audit_segments_2027_01_at_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX audit_segments_2027_01_at_idx ON public.audit_segments_2027_01 USING btree (at);


--
-- Name: audit_segments_2027_02_at_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX audit_segments_2027_02_at_idx ON public.audit_segments_2027_02 USING btree (at);


--
-- Name: audit_segments_2027_03_at_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX audit_segments_2027_03_at_idx ON public.audit_segments_2027_03 USING btree (at);


--
-- Name: audit_segments_2027_04_at_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX audit_segments_2027_04_at_idx ON public.audit_segments_2027_04 USING btree (at);


--
-- Name: audit_segments_2027_05_at_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX audit_segments_2027_05_at_idx ON public.audit_segments_2027_05 USING btree (at);


--
-- Name: audit_segments_default_at_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX audit_segments_default_at_idx ON public.audit_segments_default USING btree (at);


--
-- Name: file_contents_project; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX file_contents_project ON public.file_contents USING btree (project_id);


--
-- Name: organizations_slug; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX organizations_slug ON public.organizations USING btree (slug);


--
-- Name: projects_slug; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX projects_slug ON public.projects USING btree (organization_id, slug);


--
-- Name: sets_marked; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX sets_marked ON public.sets USING btree (project_id) WHERE (strpos(listing, '"rotateBy":"'::text) > 0);


--
-- Name: variable_requests_expiry; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX variable_requests_expiry ON public.variable_requests USING btree (organization_id, expires_at);


--
-- Name: variable_requests_number; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX variable_requests_number ON public.variable_requests USING btree (organization_id, number);


--
-- Name: variable_requests_project; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX variable_requests_project ON public.variable_requests USING btree (project_id);


--
-- Name: audit_segments_2026_11_at_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_at ATTACH PARTITION public.audit_segments_2026_11_at_idx;


--
-- Name: audit_segments_2026_11_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_lane_first_seq_at_pk ATTACH PARTITION public.audit_segments_2026_11_pkey;


--
-- Name: audit_segments_2026_12_at_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_at ATTACH PARTITION public.audit_segments_2026_12_at_idx;


--
-- Name: audit_segments_2026_12_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_lane_first_seq_at_pk ATTACH PARTITION public.audit_segments_2026_12_pkey;


--
-- Name: audit_segments_2027_01_at_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_at ATTACH PARTITION public.audit_segments_2027_01_at_idx;


--
-- Name: audit_segments_2027_01_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_lane_first_seq_at_pk ATTACH PARTITION public.audit_segments_2027_01_pkey;


--
-- Name: audit_segments_2027_02_at_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_at ATTACH PARTITION public.audit_segments_2027_02_at_idx;


--
-- Name: audit_segments_2027_02_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_lane_first_seq_at_pk ATTACH PARTITION public.audit_segments_2027_02_pkey;


--
-- Name: audit_segments_2027_03_at_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_at ATTACH PARTITION public.audit_segments_2027_03_at_idx;


--
-- Name: audit_segments_2027_03_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_lane_first_seq_at_pk ATTACH PARTITION public.audit_segments_2027_03_pkey;


--
-- Name: audit_segments_2027_04_at_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_at ATTACH PARTITION public.audit_segments_2027_04_at_idx;


--
-- Name: audit_segments_2027_04_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_lane_first_seq_at_pk ATTACH PARTITION public.audit_segments_2027_04_pkey;


--
-- Name: audit_segments_2027_05_at_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_at ATTACH PARTITION public.audit_segments_2027_05_at_idx;


--
-- Name: audit_segments_2027_05_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_lane_first_seq_at_pk ATTACH PARTITION public.audit_segments_2027_05_pkey;


--
-- Name: audit_segments_default_at_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_at ATTACH PARTITION public.audit_segments_default_at_idx;


--
-- Name: audit_segments_default_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_lane_first_seq_at_pk ATTACH PARTITION public.audit_segments_default_pkey;


--
-- Name: api_keys api_keys_organization_id_organizations_id_fk; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_organization_id_organizations_id_fk FOREIGN KEY (organization_id) REFERENCES public.organizations(id);


--
-- Name: data_keys data_keys_project_id_projects_id_fk; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.data_keys
    ADD CONSTRAINT data_keys_project_id_projects_id_fk FOREIGN KEY (project_id) REFERENCES public.projects(id) ON DELETE CASCADE;


--
-- Name: file_contents file_contents_data_key; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.file_contents
    ADD CONSTRAINT file_contents_data_key FOREIGN KEY (project_id, generation) REFERENCES public.data_keys(project_id, generation);


--
-- Name: file_contents file_contents_project_id_projects_id_fk; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.file_contents
    ADD CONSTRAINT file_contents_project_id_projects_id_fk FOREIGN KEY (project_id) REFERENCES public.projects(id) ON DELETE CASCADE;


--
-- Name: key_uses key_uses_key_id_api_keys_id_fk; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.key_uses
    ADD CONSTRAINT key_uses_key_id_api_keys_id_fk FOREIGN KEY (key_id) REFERENCES public.api_keys(id) ON DELETE CASCADE;


--
-- Name: projects projects_organization_id_organizations_id_fk; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.projects
    ADD CONSTRAINT projects_organization_id_organizations_id_fk FOREIGN KEY (organization_id) REFERENCES public.organizations(id);


--
-- Name: set_versions set_versions_project_id_projects_id_fk; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.set_versions
    ADD CONSTRAINT set_versions_project_id_projects_id_fk FOREIGN KEY (project_id) REFERENCES public.projects(id) ON DELETE CASCADE;


--
-- Name: sets sets_project_id_projects_id_fk; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.sets
    ADD CONSTRAINT sets_project_id_projects_id_fk FOREIGN KEY (project_id) REFERENCES public.projects(id) ON DELETE CASCADE;


--
-- Name: variable_requests variable_requests_organization_id_organizations_id_fk; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.variable_requests
    ADD CONSTRAINT variable_requests_organization_id_organizations_id_fk FOREIGN KEY (organization_id) REFERENCES public.organizations(id);


--
-- Name: variable_requests variable_requests_project_id_projects_id_fk; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.variable_requests
    ADD CONSTRAINT variable_requests_project_id_projects_id_fk FOREIGN KEY (project_id) REFERENCES public.projects(id) ON DELETE CASCADE;


--
-- PostgreSQL database dump complete
--


